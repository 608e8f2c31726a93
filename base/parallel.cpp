#include "pipeweaver/base/parallel.hpp"

#include "pipeweaver/base/assert.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <memory>

namespace pipeweaver {

void in_order(std::size_t count, const std::function<void(std::size_t)>& job) {
    for (std::size_t i = 0; i < count; ++i) job(i);
}

namespace {

// An arena with more slots than the machine has cores stays silent only while the global limit is raised.
struct Arena {
    explicit Arena(int threads)
        : limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads)), arena(threads) {}

    tbb::global_control limit;
    tbb::task_arena arena;
};

}  // namespace

Executor on_threads(int threads) {
    PIPEWEAVER_ASSERT(threads >= 1);
    if (threads == 1) return in_order;
    // Shared: an Executor is copied freely, and all copies use one arena.
    const auto shared = std::make_shared<Arena>(threads);
    return [shared](std::size_t count, const std::function<void(std::size_t)>& job) {
        shared->arena.execute([&] { tbb::parallel_for(std::size_t{0}, count, job, tbb::simple_partitioner{}); });
    };
}

}  // namespace pipeweaver
