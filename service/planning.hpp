// Sessions and their steps: what is submitted is planned in time, stored, and given to who asks.
//
//   submit -> plan by policy (soon) -> search (due first, first) -> stored -> collected
//
// On time      A step's search ends so much before its deadline that its plan can be put together and stored; where it
//              has had no turn by then the plan by policy is taken.
// Threads      any number may call; callbacks come on any thread.
#pragma once

#include "pipeweaver/planner/session.hpp"
#include "service/metrics.hpp"
#include "service/open_session.hpp"
#include "service/reserve.hpp"
#include "service/store.hpp"
#include "service/watch/history.hpp"
#include "service/workers.hpp"

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {
struct KeptSession;
}

namespace pipeweaver::service {

/// What the service takes on.
struct Limits {
    std::size_t sessions = 64;
    std::size_t queue = 32;         ///< unfinished steps of a session
    double rate = 200;              ///< submissions of a session a second, over a burst of as many
    std::size_t samples = 100'000;  ///< of a batch

    /// Of all sessions' unfinished steps together.
    struct Together {
        std::size_t steps = 1024, samples = 2'000'000, bytes = std::size_t{256} << 20;
        std::size_t memory = 0;  ///< of the server, beyond which a step is taken only when none is unfinished; 0: any
    };
    Together together{};
    Duration most_deadline = std::chrono::minutes(10);
    OpenLimits open;
};

enum class StepState : std::uint8_t { unknown, waiting, planned, failed, cancelled };

/// A step's batch as it is handed over.
struct Submission {
    std::string samples;       ///< as in a batch file
    Duration within{};         ///< that it is wanted in
    int priority = 0;          ///< of those that wait the highest has its turn first
    std::string request = {};  ///< its id, for the log
};

/// A refusal: a status of HTTP, a message, and after how many seconds it is worth trying again.
struct Refusal {
    int status = 400;
    std::string message;
    std::optional<int> retry_after = {};
};

/// What a request is told that failed so: 400 for input, 422 for what cannot be planned, else 500.
[[nodiscard]] Refusal refusal_of(const std::exception& error);

/// What is told of a session that there is not, and of one that does not plan yet, or cannot be opened again.
[[nodiscard]] Refusal unknown_session(const std::string& session);
[[nodiscard]] Refusal not_ready(const std::string& session, const std::string& error);

struct SessionView {
    std::string name;
    bool ready = false;
    std::string partition;  ///< as JSON; empty: not ready
    std::string model, cluster;
    std::vector<std::size_t> replicas;
    std::size_t ranks = 0, all_replicas = 0;
    std::size_t unfinished = 0, planned = 0;
    std::size_t late = 0, failed = 0;  ///< steps since the server began: planned late, and not planned
    std::string error;                 ///< why it could not be opened again after a restart
};

struct StepView {
    StepState state = StepState::unknown;
    std::optional<StoredPlan> plan;  ///< of a planned one
    std::string error;               ///< of a failed one
    int status = 0;                  ///< of it
};

/// What a step waits for that has no plan yet; `search`: nothing, it is searched or put together.
enum class WaitsFor : std::uint8_t { policy, turn, search };

struct QueuedStep {
    std::string session;
    std::int64_t step = 0;
    int priority = 0;
    std::size_t samples = 0;
    TimePoint deadline;
    WaitsFor waits_for = WaitsFor::policy;
};

class Planning {
public:
    /// Opens again what the store has. What happens is told to `log` as (event, fields as JSON members).
    using Log = std::function<void(const std::string& event, const std::string& fields)>;
    Planning(Store& store, Metrics& metrics, std::size_t threads, Limits limits, Log log);

    /// Ends what runs, within a round; callbacks that wait are dropped.
    ~Planning();

    /// Done is called when the session plans (nothing), or with why not. Asked again with equal contents it is the same
    /// session; with others it is refused.
    using Opened = std::function<void(std::optional<Refusal>)>;
    void open(const std::string& name, const std::string& asked, Opened done);

    /// Closes a session for all who use it. What is asked for under its name meanwhile is opened when it is closed.
    /// Throws Error{io} where it cannot be taken out of the store: then it is open as before.
    [[nodiscard]] std::optional<Refusal> close(const std::string& name);

    /// Says that a session that is being opened is wanted in that time: the search of its first plan ends by then.
    void hurry(const std::string& session, Duration within);
    [[nodiscard]] std::vector<SessionView> sessions() const;
    [[nodiscard]] std::optional<SessionView> session(const std::string& name) const;

    /// Takes a step to be planned. Submitted again with equal samples nothing happens. `fresh` says whether it is new.
    [[nodiscard]] std::optional<Refusal> submit(const std::string& session, std::int64_t step, Submission submission,
                                                bool& fresh);

    /// Says that the step's plan is wanted in that time: a later deadline becomes that one. Does nothing where the step
    /// does not wait.
    void hurry(const std::string& session, std::int64_t step, Duration within);

    [[nodiscard]] std::optional<Refusal> cancel(const std::string& session, std::int64_t step);

    [[nodiscard]] StepView step(const std::string& session, std::int64_t step) const;

    /// Gives the time left until the step's deadline; 0: it is not waiting.
    [[nodiscard]] Duration left(const std::string& session, std::int64_t step) const;

    /// Runs a task on a thread that plans, before all else: for requests that take long to read.
    void soon(std::function<void()> task) { workers_.soon(std::move(task)); }

    /// Calls `done` as soon as the step does not wait any longer; at once where it does not. Returns the number by
    /// which forget() forgets it.
    std::uint64_t when_done(const std::string& session, std::int64_t step, std::function<void()> done);
    void forget(const std::string& session, std::int64_t step, std::uint64_t waiter);

    /// A part of a planned step, zipped (service/parts.hpp); none: there is no such part.
    [[nodiscard]] std::optional<std::string> zipped_part(const std::string& session, std::int64_t step,
                                                         const std::string& part) const;
    [[nodiscard]] std::vector<std::string> part_names(const std::string& session, std::int64_t step) const;

    /// The latest planned steps, the latest first.
    [[nodiscard]] std::vector<std::int64_t> planned_steps(const std::string& session, std::size_t most) const;

    /// Gives what is kept of a session, empty while it is being opened; none: there is no such session.
    [[nodiscard]] std::optional<std::string> kept(const std::string& session) const;

    /// The record of a planned step.
    [[nodiscard]] std::optional<std::string> record(const std::string& session, std::int64_t step) const;

    /// Whether all sessions of the store plan again.
    [[nodiscard]] bool ready() const;

    /// From now on nothing is taken any more; true: nothing is unfinished.
    bool drain();

    [[nodiscard]] std::size_t unfinished() const;
    [[nodiscard]] bool draining() const;

    /// So many of the steps that wait, those due first.
    [[nodiscard]] std::vector<QueuedStep> queue(std::size_t most) const;

    /// The steps that were done last, with why they were late.
    [[nodiscard]] const History& history() const { return history_; }
    [[nodiscard]] const Limits& limits() const { return limits_; }

private:
    struct Step;
    struct Session;
    using StepPtr = std::shared_ptr<Step>;
    using SessionPtr = std::shared_ptr<Session>;

    /// A step with its batch. Throws what its samples are refused with.
    static StepPtr step_of(std::int64_t number, const std::string& sha, const planner::KeptSession& job,
                           Submission submission, TimePoint submitted);
    SessionPtr find(const std::string& name) const;
    std::optional<Refusal> refused_for_load(Session& session, const Step& step);  // under the lock
    void open_now(const SessionPtr& session, const std::string& asked);
    void open_again(const SessionPtr& session, const std::string& kept);
    void ready(const SessionPtr& session, std::shared_ptr<const planner::KeptSession> job, std::string kept,
               const Reserve& reserve);
    void opened(const SessionPtr& session, const std::optional<Refusal>& refusal);
    void closed(const SessionPtr& session);

    /// What the store has of a step. Nothing where it cannot be read: what comes is planned all the same.
    std::optional<StoredPlan> served(const std::string& session, std::int64_t step) const;
    void by_policy(const SessionPtr& session, const StepPtr& step);
    void search(const SessionPtr& session, const StepPtr& step);
    void search_until(const SessionPtr& session, const StepPtr& step, planner::Begun begun, Duration reserve);
    void finish(const SessionPtr& session, const StepPtr& step, const planner::Plan& plan, const planner::How& how,
                Duration reserve);

    /// Stores the step's plan or, where it cannot be stored, keeps it: from then on it stays. False: nobody wants it.
    bool settle(const SessionPtr& session, const StepPtr& step, StoredPlan stored, std::vector<Part> parts);
    void failed(const SessionPtr& session, const StepPtr& step, const std::exception& error);
    void done(const SessionPtr& session, const StepPtr& step, StepState state);
    std::shared_ptr<const planner::KeptSession> job_of(const SessionPtr& session) const;

    /// When the step's search is to begin at last. Under the lock.
    static TimePoint due(const Session& session, const Step& step);

    // To metrics, log and history.
    void tell_planned(Session& session, const Step& step, const planner::Plan& plan);
    void tell_failed(Session& session, const Step& step, const std::string& why);

    /// Gives the time that the step's search may take: it lasts until `reserve` before the step's deadline, which may
    /// change, unless another step must go first.
    planner::Time until(const StepPtr& step, Duration reserve) const;

    Store& store_;
    Metrics& metrics_;
    Limits limits_;
    Log log_;
    mutable std::mutex mutex_;
    std::map<std::string, SessionPtr> sessions_;
    std::size_t opening_ = 0, unfinished_ = 0;
    std::size_t samples_ = 0, bytes_ = 0;  // of unfinished steps
    std::uint64_t next_waiter_ = 1;
    bool draining_ = false;
    History history_;
    std::atomic<std::size_t> turns_ = 0;  // that steps had
    std::atomic<bool> ending_ = false;
    Workers workers_;  // last: its threads end before what they use
};

}  // namespace pipeweaver::service
