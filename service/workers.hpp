// The threads of the service that plan, and what they do next.
//
// Order        What must be there soon (plans by policy) goes before all else: also between two rounds of a search that
//              runs. Then what has the highest priority, of that what is due first; then what is never due. Where that
//              waits for long it goes before what is due, and leaves that a thread; where there is but one, it lets one
//              that is due go first between two of its rounds. A thread with nothing of its own to do helps with the
//              rounds of others.
// Threads      any number may call; tasks run on the threads made here and on no other.
#pragma once

#include "pipeweaver/base/parallel.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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

    /// `most_waiting`: what is never due waits no longer for what is.
    explicit Workers(std::size_t threads, std::chrono::nanoseconds most_waiting = std::chrono::seconds(1));

    /// Lets what runs end; what waits is dropped.
    ~Workers();

    /// Runs the task before all else. Of the executors it may use quick_executor() alone.
    void soon(Task task);

    /// By which a task that waits until it is due is moved or dropped.
    using Ticket = std::uint64_t;

    /// Runs the task after what has a higher priority, and what is due before; where the time has passed, as soon()
    /// does. One that is due at TimePoint::max() never is.
    Ticket by(TimePoint due, Task task, int priority = 0);

    /// Does nothing where the task does not wait any longer.
    void move(Ticket ticket, TimePoint due);

    /// False: the task does not wait any longer.
    bool drop(Ticket ticket);

    /// Says whether a task that began then has had its share of the threads' time, seen what waits and when that is
    /// due: so many tasks wait that they could not all be done in time otherwise.
    [[nodiscard]] bool must_yield(TimePoint begun) const;

    /// Runs rounds on the calling thread and on those that have nothing to do; what must be there soon goes first.
    [[nodiscard]] Executor executor();

    /// Runs rounds as executor() does, and lets nothing go first.
    [[nodiscard]] Executor quick_executor();

    /// Runs rounds as executor() does, for a task that is never due: where no other thread is left for it, one that is
    /// due goes first before a round, whole.
    [[nodiscard]] Executor patient_executor();

    /// Tasks that wait.
    [[nodiscard]] std::size_t waiting() const;

private:
    struct Waiting {
        Task task;
        int priority = 0;
        Ticket ticket = 0;
        TimePoint since{};
    };
    struct Next {
        Task task;  // none: an empty one
        bool is_never_due = false;
    };
    using Due = std::multimap<TimePoint, Waiting>;
    enum class Which : std::uint8_t { late, due, any };
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
    void run_what_is_late();
    void run_one_due();

    // Under the lock.
    Task next_soon();  // none: an empty one
    Next next_due(Which which);
    Due::iterator next_in_turn(Which which);  // none: the end
    Due::iterator waiting_for(Ticket ticket);
    Round* open_round();

    mutable std::mutex mutex_;
    std::condition_variable_any wake_;
    std::condition_variable helped_;
    std::deque<Task> soon_;
    Due due_;
    std::map<Ticket, TimePoint> due_of_;  // when what waits is due
    Ticket next_ticket_ = 1;
    std::list<Round> rounds_;
    std::chrono::nanoseconds most_waiting_;
    std::size_t count_;          // of threads
    std::size_t never_due_ = 0;  // tasks that run
    std::atomic<std::size_t> idle_ = 0;
    std::vector<std::jthread> threads_;  // last: they end before what they use
};

}  // namespace pipeweaver::service
