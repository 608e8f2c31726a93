// A job that runs: what it plans batch after batch with. The weights lie where they lie, so setup and partition stay;
// first comes a plan without a search, ready soon, then the best that is found until the caller needs it.
//
// Threads      any number of batches at once.
// Determinism  Without an end in time a plan is a function of the session and the batch.
#pragma once

#include "pipeweaver/planner/static_order.hpp"
#include "pipeweaver/search/options.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace pipeweaver::planner {

struct Cut;
struct Plan;

/// Is handed a plan that runs, while a better one is searched for.
using OnDraft = std::function<void(Plan)>;

/// Of each part of its time that a replica's search opened, after how many questions whether it may go on it was over;
/// none: the search ended before.
using Stops = std::vector<std::optional<std::uint64_t>>;

/// When the search of a replica ended. None: a policy's schedule stayed, for want of time.
using Ending = std::optional<Stops>;

/// Of each of a session's replicas. With them in place of a clock the same plan comes out again.
using Endings = std::vector<Ending>;

/// How a plan was found: by its searches' endings; none: it is the plan by policy.
using How = std::optional<Endings>;

/// `time`, which counts in `stops` what each part of it that is opened answers until it ends a search. Pre: `stops`
/// outlives it, and parts are opened one after the other.
[[nodiscard]] Time counted(const Time& time, Stops& stops);

/// Time that answers as one that left `ending`; without an ending there is none. Where more parts are opened than then,
/// that throws Error{input}. Pre: `ending` outlives it.
[[nodiscard]] Time again(const Ending& ending);

/// A batch of a session of which a plan by policy is known: its steps are built, and quick policies applied. Pre: its
/// session stays where it is.
class Begun {
public:
    Begun(Begun&& other) noexcept;
    Begun& operator=(Begun&& other) noexcept;
    ~Begun();

    /// Whether a policy applies to each replica.
    [[nodiscard]] bool has_policy() const;

private:
    friend class Session;
    struct Parts;
    explicit Begun(std::unique_ptr<Parts> parts);

    std::unique_ptr<Parts> parts_;
};

class Session {
public:
    /// Goes on from the plan of the job's first batch: its partition and the replicas that it is of stay, and, where
    /// the job leaves it open, whether backwards are split. (Trying both takes a fraction of the time that is known
    /// beforehand, and a running job does not know how long a search may last.) Where the first plan was searched for,
    /// the searches of all later ones begin with its order, too.
    Session(Job job, const Plan& first);

    /// Goes on from what is kept of a job: the replicas that it plans, sorted, and the order that searches begin with,
    /// if there is one. Without `own_patience` searches go on until their time is over, or a plan is proven optimal.
    /// Pre: job.fixed, and job.split is not automatic.
    Session(Job job, std::vector<std::size_t> replicas, std::optional<StaticOrder> order,
            std::optional<search::Patience> own_patience);

    /// The job, with its partition fixed, and a choice whether backwards are split.
    const Job& job() const { return job_; }
    const partition::Partition& partition() const { return job_.fixed->partition; }
    const std::vector<std::size_t>& replicas() const { return replicas_; }

    /// The steps of the session's replicas of a batch, priced and no more: a plan of it prices no layer again. Throws
    /// as plan().
    [[nodiscard]] std::vector<Cut> steps(const Batch& batch, const Executor& execute) const;

    /// Applies a few quick policies or, where none of them applies, all until one does. Throws as make_plan(). Pre:
    /// job().batch() made `batch`.
    [[nodiscard]] Begun begin(const Batch& batch, const Executor& execute) const;

    /// The fastest of those policies' schedules, without a search. Throws Error{limit} where no policy applies or the
    /// batch does not fit.
    [[nodiscard]] Plan by_policy(const Begun& begun) const;
    [[nodiscard]] Plan by_policy(const Batch& batch, const Executor& execute) const;

    /// Goes on with all policies and a search, the replica that takes longest first, for what `time` leaves each. Where
    /// a search is told to stop at once the fastest policy's schedule stays. No schedules for other targets and no
    /// replays under perturbed costs. What is asked of `time` is put into `endings`.
    [[nodiscard]] Plan plan(Begun begun, const Executor& execute, const Time& time, Endings* endings = nullptr) const;

    /// Begins with the batch, and hands its plan by policy to `draft`, if there is one.
    [[nodiscard]] Plan plan(const Batch& batch, const Executor& execute, const Time& time, const OnDraft& draft = {},
                            Endings* endings = nullptr) const;

    /// The plan that left `endings`, if all that ended a search then was its budget, or the batch's rounds. Pre: one
    /// for each replica.
    [[nodiscard]] Plan plan_again(const Batch& batch, const Executor& execute, const Endings& endings) const;

private:
    Plan plan(Begun begun, const Executor& execute, const Time& time,
              const std::function<Time(std::size_t, const Time&)>& of_replica, Endings* endings) const;
    struct ScheduleWanted wanted(const struct Assignment& assignment, std::size_t replica, std::size_t tasks) const;

    Job job_;
    std::vector<std::size_t> replicas_;
    std::optional<StaticOrder> order_;  ///< of the first plan
    std::optional<search::Patience> patience_;
};

}  // namespace pipeweaver::planner
