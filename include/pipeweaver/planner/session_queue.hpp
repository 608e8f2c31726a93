// Plans of a session's batches, one after the other beside the caller's work, each in the time that its caller has.
//
//   SessionQueue queue(session, threads, clock);
//   auto next = queue.submit(read_batch, budget);       returns at once; planned after what was submitted before
//   auto made = next->result(deadline);                 the best plan by then: searched for, else by policy
//
// Threads      any number may call, of a queue and of a handle. One thread of the queue's own plans; it exists only
//              while there is work.
// Ownership    a handle outlives its queue: what was not done when the queue went was cancelled. The session must not
//              change; several queues may plan with it.
// Forks        a child has no thread of the queue's, and its locks may be held for ever. It makes a queue of its own
//              for the same session, and neither uses nor destroys its parent's queue and handles; of a handle it may
//              ask done() and cancelled().
// Time         is read from the caller's clock; beside it the system's clock is what waiting uses.
#pragma once

#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/session.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace pipeweaver::planner {

/// Tells how much time has passed since a moment that stays. Any thread may ask at any time.
using Clock = std::function<Duration()>;

/// A batch and its plan.
struct BatchPlan {
    Batch batch;
    Plan plan;
    Duration took{};  ///< from when its planning began
};

/// The plan of a batch that was submitted: there, or being made, or given up.
class Planned {
public:
    explicit Planned(Clock clock) : clock_(std::move(clock)) {}

    /// Whether the best plan is there, or planning failed or was cancelled.
    bool done() const { return state_ != State::open; }
    bool cancelled() const { return state_ == State::cancelled; }

    /// Ends planning, within a round. False where the plan was there, or planning had failed.
    bool cancel();

    /// The plan by policy. Null: it is not there yet, or no quick policy applies.
    [[nodiscard]] std::shared_ptr<const BatchPlan> draft() const;

    /// The best plan that is found in `deadline` from now; without a deadline, in the batch's budget. The search is
    /// told to end a little earlier; where it has not ended by then, the plan by policy, for which alone a deadline
    /// passes. Null: it was cancelled. Throws what planning threw. `meanwhile` is called some twenty times a second on
    /// the thread that waits; what it throws ends this wait, and nothing else.
    [[nodiscard]] std::shared_ptr<const BatchPlan> result(std::optional<Duration> deadline = {},
                                                          const std::function<void()>& meanwhile = {});

private:
    friend class SessionQueue;
    enum class State : std::uint8_t { open, made, failed, cancelled };

    bool wait(std::unique_lock<std::mutex>& lock, const Time::Left& left, const std::function<void()>& meanwhile,
              const std::function<bool()>& is_there);
    bool end(State state, std::shared_ptr<const BatchPlan> plan, std::exception_ptr error);
    void drafted(std::shared_ptr<const BatchPlan> plan);

    Clock clock_;
    std::atomic<State> state_ = State::open;  // set under the lock
    std::atomic<bool> search_ends_ = false;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::shared_ptr<const BatchPlan> draft_, plan_;
    std::exception_ptr error_;
};

class SessionQueue {
public:
    /// Reads or makes a batch, on the queue's thread when its planning begins; what it throws result() throws.
    using MakeBatch = std::function<Batch()>;

    /// `threads` makes what a batch is planned on, when its planning begins.
    SessionQueue(std::shared_ptr<const Session> session, std::function<Executor()> threads, Clock clock);

    /// Cancels what is not done, and waits until its thread has ended: within a round of a search.
    ~SessionQueue();

    SessionQueue(const SessionQueue&) = delete;
    SessionQueue& operator=(const SessionQueue&) = delete;

    /// Plans the batch after those that were submitted before and wait with its priority or a higher one. Its budget
    /// begins with its planning; none: until the session's rounds are through. Pre: the session's job made what `batch`
    /// returns.
    std::shared_ptr<Planned> submit(MakeBatch batch, std::optional<Duration> budget = {}, int priority = 0);

    /// Cancels what is not done. More may be submitted.
    void close();

private:
    struct Item {
        std::shared_ptr<Planned> planned;
        MakeBatch batch;
        std::optional<Duration> budget;
        int priority = 0;
    };

    void work();
    void plan(const Item& item) const;
    Time time_for(const Item& item) const;

    std::shared_ptr<const Session> session_;
    std::function<Executor()> threads_;
    Clock clock_;
    std::mutex mutex_;
    std::list<Item> waiting_;           // in the order that they are planned in
    std::shared_ptr<Planned> running_;  // null: none
    bool working_ = false;              // else the thread ends, or there is none
    std::thread thread_;
};

}  // namespace pipeweaver::planner
