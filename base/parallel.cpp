#include "pipeweaver/base/parallel.hpp"

#include <exception>
#include <vector>

namespace pipeweaver {

void in_order(std::size_t count, const std::function<void(std::size_t)>& job) {
    for (std::size_t i = 0; i < count; ++i) job(i);
}

void run_jobs(const Executor& execute, std::size_t count, const std::function<void(std::size_t)>& job) {
    std::vector<std::exception_ptr> failures(count);
    execute(count, [&](std::size_t i) {
        try {
            job(i);
        } catch (...) {
            failures[i] = std::current_exception();
        }
    });
    for (const auto& failure : failures)
        if (failure) std::rethrow_exception(failure);
}

}  // namespace pipeweaver
