// One replica of a plan, from its microbatches to its schedule. It is a function of the job, the partition and how
// the batch is shared out, and of nothing that is found for other replicas: each can be planned alone, where it runs.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/time.hpp"
#include "planner/evaluate/step.hpp"
#include "planner/replicas/assignment.hpp"
#include "planner/schedule/schedule_step.hpp"

#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::planner {

/// What a policy makes of one replica.
struct PolicyTime {
    std::string policy;
    Duration makespan{};
    std::string why_not{};  ///< not empty: it does not apply
};

/// What is known of a replica's step when the step itself is let go.
struct ReplicaTimes {
    std::vector<PolicyTime> policies;
    Duration bound{};  ///< of every schedule
    Duration optimizer{};
};
[[nodiscard]] ReplicaTimes times_of(const Step& known);

/// A policy counts where it applies on every replica, with the time of the slowest; a bound of any replica is one of
/// the step. Pre: all replicas were evaluated with the same policies.
[[nodiscard]] Baselines baselines_of(const partition::Partition& partition, const std::vector<ReplicaTimes>& replicas);

/// Of the policies on the plan's partition; null: there is none. Pre: `baselines` outlives the answer.
[[nodiscard]] const Baseline* fastest_policy(const Baselines& baselines);

/// The fastest opponent of a batch that runs on the plan's own ranks, of those that the target launches if there are
/// any: what the plan is pictured beside, and must stand up to if costs are wrong.
struct OpponentRun {
    Baseline baseline;
    std::vector<Step> steps;                    ///< per replica
    std::vector<schedule::Schedule> schedules;  ///< on `steps`
};

/// The run on those of the replicas that have these numbers. None: there is no such opponent, or it does not fit one of
/// them. Pre: `baselines` is what run_opponents() said of that batch.
[[nodiscard]] std::optional<OpponentRun> pipelined_opponent(const Target& runs, const Opponents& opponents,
                                                            const Baselines& baselines,
                                                            const std::vector<Microbatches>& replicas,
                                                            const std::vector<std::size_t>& numbers);

/// The opponent as it runs on one of its replicas, with the lags and tails that its schedule leads to.
[[nodiscard]] BaselinePlan pictured(const OpponentRun& run, std::size_t replica);

/// The plan against an opponent and a policy on its own partition if costs are wrong, on these of its replicas, on
/// which the opponent ran first; none without either, which may be null.
[[nodiscard]] std::optional<Robustness> robustness_of(const std::vector<const ScheduledStep*>& examined,
                                                      const OpponentRun* opponent, const Baseline* policy,
                                                      const Draws& draws, const Executor& execute);

/// What all replicas of a plan have in common. What it refers to outlives it.
struct AllReplicas {
    const Job& job;
    const Wanted& wanted;
    const partition::Partition& partition;
    const Assignment& assignment;
};

struct PlannedReplica {
    ReplicaPlan plan;
    ScheduledStep scheduled;  ///< what the plan was made from: every backward is split that the search could split; of
                              ///< those that no one replays its `choice` alone
    ReplicaTimes times;
    std::string why_not{};  ///< not empty, and no more known: it does not fit (rank, bytes short), or has no schedule
};

/// The replica as it was scheduled. Pre: it was.
[[nodiscard]] PlannedReplica planned(const AllReplicas& all, std::size_t number, ScheduledStep scheduled);

/// Plans the replica within its time.
[[nodiscard]] PlannedReplica plan_replica(const AllReplicas& all, std::size_t number, const Executor& execute,
                                          const Time& time);

/// Lets go of all that grows with the tasks, but for the schedule: of thousands of replicas few are looked at again.
void let_go(ReplicaPlan& replica);

/// How a replica's step is built.
[[nodiscard]] StepWanted replica_wanted(const emulator::Setup& setup, const partition::Partition& partition,
                                        std::size_t number);

/// The replica with its final step, and sums over it.
[[nodiscard]] ReplicaPlan finished(const Assignment& assignment, std::size_t number, ScheduledStep scheduled);

/// Work on one replica, on that executor, within that time. It writes nothing that others read.
using ReplicaWork = std::function<void(std::size_t replica, const Executor& execute, const Time& time)>;

/// Works on these replicas, the first ones first, within `part` of `time`, each in an equal part of what the others
/// have left, less what those before took beyond theirs. Where they are as many as threads, a multiple, or more than
/// twice as many, they go side by side, each on one thread; no result depends on that. Of several errors the first by
/// `replicas` is thrown.
void for_replicas(std::span<const std::size_t> replicas, const ReplicaWork& work, const Executor& execute,
                  const Time& time, double part);

/// The partition that the job fixes, else those that runtimes of one chain are given.
[[nodiscard]] std::vector<partition::Partition> partitions_of(const Job& job, const Batch& batch);

/// The numbers of the replicas that are wanted.
[[nodiscard]] std::vector<std::size_t> replicas_of(const Job& job, const Wanted& wanted);

/// Of a target that was not planned, and why.
[[nodiscard]] TargetPlan no_target_plan(const Target& target, const std::string& why);

/// Plan::targets where none was.
[[nodiscard]] std::vector<TargetPlan> no_target_plans(const std::string& why);

/// Replicas, makespan, bound, step, shares of time and MFU; what the plan is compared with is the caller's to add.
[[nodiscard]] Plan assemble(const Job& job, const Assignment& assignment, std::vector<ReplicaPlan> replicas);

/// Plans one replica.
using MakeReplica = std::function<PlannedReplica(const AllReplicas& all, std::size_t number, const Executor& execute,
                                                 const Time& time)>;

/// All replicas of a plan, as far as they are remembered: of many, those that are examined and the slowest of the
/// others.
class PlannedReplicas {
public:
    /// Pre: the arguments outlive it.
    PlannedReplicas(const AllReplicas& all, const std::vector<std::size_t>& numbers)
        : all_(all), numbers_(numbers), replicas_(numbers.size()), times_(numbers.size()) {}

    /// Plans each within its share of a part of the time.
    void plan(const Executor& execute, const Time& time, double part, const MakeReplica& make = plan_replica);

    /// Why the first that has no plan has none; empty: all are planned.
    std::string why_not() const;

    /// Of the slowest, with the optimizer. Pre: all are planned, and so below.
    Duration step() const;

    /// Those that are replayed under perturbed costs: the first of those that are examined. None where time is short
    /// and they take some.
    std::vector<const ScheduledStep*> replayed(const Time& time) const;

    const std::vector<ReplicaTimes>& times() const { return times_; }
    const RobustChoice& choice(std::size_t place) const { return replicas_[place].scheduled.choice; }

    std::vector<ReplicaPlan> take();

private:
    bool is_slower(std::size_t place, std::size_t other) const;
    void keep(std::size_t place, PlannedReplica one);

    const AllReplicas& all_;
    const std::vector<std::size_t>& numbers_;
    std::vector<PlannedReplica> replicas_;
    std::vector<ReplicaTimes> times_;
    std::optional<std::size_t> slowest_;  // of those that are not examined
    std::mutex mutex_;
};

}  // namespace pipeweaver::planner
