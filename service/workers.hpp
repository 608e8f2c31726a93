// The threads of the service that plan, and what they do next.
//
// Order        What must be there soon (plans by policy) goes before all else: also between two rounds of a search that
//              runs. Then what has the highest priority, of that what is due first. A thread with nothing of its own to
//              do helps with the rounds of others.
// Threads      any number may call; tasks run on the threads made here and on no other.
#pragma once

#include "pipeweaver/base/parallel.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace pipeweaver::service {

using TimePoint = std::chrono::steady_clock::time_point;

class Workers {
public:
    /// Does not throw.
    using Task = std::function<void()>;

    explicit Workers(std::size_t threads);

    /// Lets what runs end; what waits is dropped.
    ~Workers();

    /// Runs the task before all else. It runs no rounds on executor().
    void soon(Task task);

    /// Runs the task after what has a higher priority, and what is due before; where the time has passed, as soon()
    /// does.
    void by(TimePoint due, Task task, int priority = 0);

    /// Says whether a task that began then has had its share of the threads' time, seen what waits and when that is
    /// due: so many tasks wait that they could not all be done in time otherwise.
    [[nodiscard]] bool must_yield(TimePoint begun) const;

    /// Runs rounds on the calling thread and on those that have nothing to do; what must be there soon goes first.
    [[nodiscard]] Executor executor();

    /// Tasks that wait.
    [[nodiscard]] std::size_t waiting() const;

private:
    struct Waiting {
        Task task;
        int priority = 0;
    };
    struct Round {
        const std::function<void(std::size_t)>* job = nullptr;
        std::size_t count = 0;
        std::atomic<std::size_t> next = 0;
        int helpers = 0;

        bool has_more() const { return next.load() < count; }
        void take() {
            for (std::size_t i = next++; i < count; i = next++) (*job)(i);
        }
    };

    void work(const std::stop_token& stop);
    void round(std::size_t count, const std::function<void(std::size_t)>& job);
    void help_all(std::size_t count, const std::function<void(std::size_t)>& job);
    void run_what_is_due();
    Task next_due(bool at_any_time);  // under the lock; none: an empty one
    Round* open_round();              // under the lock

    mutable std::mutex mutex_;
    std::condition_variable_any wake_;
    std::condition_variable helped_;
    std::deque<Task> soon_;
    std::multimap<TimePoint, Waiting> due_;
    std::list<Round> rounds_;
    std::atomic<std::size_t> idle_ = 0;
    std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace pipeweaver::service
