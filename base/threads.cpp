#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/parallel.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <latch>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace pipeweaver {

int possible_threads(int wanted) {
    std::latch end(1);
    std::vector<std::thread> made;
    made.reserve(static_cast<std::size_t>(wanted));
    try {
        while (static_cast<int>(made.size()) + 1 < wanted) made.emplace_back([&end] { end.wait(); });
    } catch (const std::system_error&) {  // a limit of processes or of memory: that is the answer
    }
    end.count_down();
    for (std::thread& one : made) one.join();
    return static_cast<int>(made.size()) + 1;
}

namespace {

// An arena with more slots than the machine has cores stays silent only while the global limit is raised.
struct Arena {
    explicit Arena(int threads)
        : limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(threads)), arena(threads) {}

    tbb::global_control limit;
    tbb::task_arena arena;
};

struct OnArena {
    std::shared_ptr<Arena> shared;
    std::size_t threads;

    void operator()(std::size_t count, const std::function<void(std::size_t)>& job) const {
        shared->arena.execute([&] { tbb::parallel_for(std::size_t{0}, count, job, tbb::simple_partitioner{}); });
    }
};

}  // namespace

Executor on_threads(int threads) {
    PIPEWEAVER_ASSERT(threads >= 1);
    if (threads == 1) return in_order;
#ifdef __SANITIZE_THREAD__  // it sees nothing of how TBB's library hands work over
    return on_own_threads(threads);
#else
    // Shared: an Executor is copied freely, and all copies use one arena.
    return OnArena{std::make_shared<Arena>(threads), static_cast<std::size_t>(threads)};
#endif
}

namespace {

// Threads that wait for a round of jobs; the caller takes part in it.
class Pool {
public:
    explicit Pool(int helpers) {
        for (int i = 0; i < helpers; ++i) threads_.emplace_back([this](const std::stop_token& stop) { help(stop); });
    }

    void run(std::size_t count, const std::function<void(std::size_t)>& job) {
        if (count <= 1 || busy_.test_and_set()) return in_order(count, job);
        {
            const std::lock_guard lock(mutex_);
            job_ = &job;
            count_ = count;
            next_ = 0;
            ++round_;
        }
        wake_.notify_all();
        take(count, job);
        std::unique_lock lock(mutex_);
        job_ = nullptr;  // whoever wakes only now finds nothing to do
        idle_.wait(lock, [this] { return working_ == 0; });
        busy_.clear();
    }

private:
    void take(std::size_t count, const std::function<void(std::size_t)>& job) {
        for (std::size_t i = next_++; i < count; i = next_++) job(i);
    }

    void help(const std::stop_token& stop) {
        std::uint64_t seen = 0;
        std::unique_lock lock(mutex_);
        while (wake_.wait(lock, stop, [&] { return round_ != seen; })) {
            seen = round_;
            if (job_ == nullptr) continue;
            const auto& job = *job_;
            const std::size_t count = count_;
            ++working_;
            lock.unlock();
            take(count, job);
            lock.lock();
            if (--working_ == 0) idle_.notify_one();
        }
    }

    std::atomic_flag busy_;
    std::mutex mutex_;
    std::condition_variable_any wake_;
    std::condition_variable idle_;
    const std::function<void(std::size_t)>* job_ = nullptr;
    std::size_t count_ = 0;
    std::atomic<std::size_t> next_ = 0;
    std::uint64_t round_ = 0;
    int working_ = 0;
    std::vector<std::jthread> threads_;  // last: they end before what they use
};

struct OnPool {
    std::shared_ptr<Pool> pool;
    std::size_t threads;

    void operator()(std::size_t count, const std::function<void(std::size_t)>& job) const { pool->run(count, job); }
};

}  // namespace

Executor on_own_threads(int threads) {
    PIPEWEAVER_ASSERT(threads >= 1);
    if (threads == 1) return in_order;
    return OnPool{std::make_shared<Pool>(threads - 1), static_cast<std::size_t>(threads)};
}

std::size_t threads_of(const Executor& execute) {
    if (const auto* arena = execute.target<OnArena>()) return arena->threads;
    if (const auto* pool = execute.target<OnPool>()) return pool->threads;
    return 1;
}

}  // namespace pipeweaver
