// What a plan consists of: a schedule of every replica, the schedules it is compared with, those of other targets.
#pragma once

#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/emulator/time_shares.hpp"
#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/planner/input.hpp"
#include "pipeweaver/planner/partition_choice.hpp"
#include "pipeweaver/planner/robustness.hpp"
#include "pipeweaver/planner/rung.hpp"
#include "pipeweaver/planner/step_recompute.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/search.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A partition of one replica's microbatches, and the step that they make.
struct Cut {
    partition::Partition partition;
    std::vector<std::vector<std::vector<emulator::Unit>>> units;  ///< per microbatch, per chain
    emulator::StepProblem step;
};

/// What a policy makes of a step.
struct PolicyRun {
    std::string policy;
    bool on_split = false;  ///< of the step with split backwards
    search::PolicyResult result{};
    emulator::PortWaits waits{};  ///< that `result.replay` has; of a problem that no partition made, none
    bool left_out = false;        ///< for lack of time; `result` says so

    bool applies() const { return result.schedule.has_value(); }
    Duration makespan() const { return result.replay.makespan; }
};

/// An opponent, or a policy on the plan's partition, on every replica: the slowest decides, as it does for the plan.
struct Baseline {
    std::string partition;
    std::int64_t chunks_per_rank = 1;
    std::string policy;
    Duration makespan{};
    std::optional<Duration> bound{};  ///< of a policy, the largest of the replicas' problems: no makespan of the
                                      ///< partition is shorter
    Duration step{};           ///< makespan and the optimizer, which takes longer where a rank has more parameters
    bool is_opponent = false;  ///< what engineers run (opponents.hpp); else a policy on the plan's partition
    std::optional<StepRecompute> recompute{};  ///< of an opponent
    std::optional<std::size_t> way{};  ///< of an opponent: its place among those that were chosen (Opponents::ways)
    bool launched = false;             ///< of an opponent: the job's target launches it
    bool on_own_ranks = false;         ///< of an opponent: in the plan's layout, with its pipeline
    bool padded = false;               ///< of an opponent: the job's target pads its microbatches
    std::string command{};  ///< of an opponent: the `pipeweaver emulate` that prints its step; empty: there is none
};

/// Why something was not tried in a plan that is limited in time.
inline constexpr const char* no_time_left = "not tried: no time was left";

struct NotApplicable {
    std::string partition;
    std::int64_t chunks_per_rank = 1;
    std::string policy;
    std::string why;
    Bytes short_by{};            ///< where it does not fit: what it is short of, at least; 0: not known
    bool launched = false;       ///< of an opponent: the job's target launches it
    bool in_own_layout = false;  ///< of an opponent: in the plan's layout and ZeRO stage
    /// Of an opponent that the sample refused, whose batches may hold more or less than another. Null: of the batch.
    std::shared_ptr<const struct OpponentWay> on_sample{};
};

/// A baseline as it runs on the plan's slowest replica; its `replay` may be shorter than the `baseline`'s makespan,
/// which is of the baseline's own slowest.
struct BaselinePlan {
    Baseline baseline;
    Cut cut;
    schedule::Schedule schedule;
    schedule::Replay replay;
};

/// The known schedules that a plan is compared with.
struct Baselines {
    /// Every one that applies on all replicas: opponents, the fastest first, then policies on the plan's partition.
    std::vector<Baseline> all;
    std::vector<NotApplicable> not_applicable;  ///< the other pairs
    std::optional<BaselinePlan> pictured;       ///< the fastest on the plan's own ranks that the target launches
    partition::ChosenOn chosen_on{};            ///< the sample that the job's opponent was chosen on

    /// The fastest opponent on the batch; null: none runs.
    const Baseline* fastest_opponent() const {
        return all.empty() || !all.front().is_opponent ? nullptr : &all.front();
    }

    /// The job's opponent, the fastest on its sample of those that run; null: none does.
    const Baseline* opponent() const;
};

struct ReplicaPlan {
    std::size_t number = 0;
    bool examined = true;                   ///< it is one of those that are looked at closely
    std::vector<std::size_t> microbatches;  ///< indices into Batch::microbatches
    Cut cut;                                ///< by the plan's partition; lags are those that the schedule leads to
    search::Found found;                    ///< its schedule
    emulator::PortWaits waits{};            ///< of its transfers
    Duration optimizer{};
    double model_flops = 0;
    emulator::TimeShares shares;  ///< sums, not normalised
    std::size_t backwards = 0;
    std::size_t split_backwards = 0;  ///< of them, into input and weight gradient
};

/// Is handed each replica's plan when it is made, by any thread.
using OnReplica = std::function<void(const ReplicaPlan&)>;

/// A policy on a partition under a target's rules, with the recomputation that is fastest.
struct TargetBaseline {
    std::string partition;
    std::int64_t chunks_per_rank = 1;
    std::string policy;
    StepRecompute recompute;
    Duration makespan{};
};

/// The schedule for a target that has one of its own; see Target. Of a target with fixed shapes it is every replica's:
/// replicas that shard weights must gather them in one order. Of another it is replica 0's.
struct TargetPlan {
    std::string target;
    std::size_t replica = 0;                ///< that it was made on: of fixed shapes the one with the most to do
    std::vector<std::size_t> microbatches;  ///< as ReplicaPlan's
    std::size_t repeated = 0;  ///< of fixed shapes: microbatches of all replicas that are run once more, for no loss
    Cut cut;                   ///< as ReplicaPlan's
    search::Found found;
    Bytes peak_of_fullest{};  ///< of a GPU, of the replica that holds most, where replicas keep their shapes; else 0
    emulator::PortWaits waits{};
    RobustChoice choice;
    partition::Padded padding;  ///< of a target with fixed shapes; else its `microbatches` alone
    StepRecompute recompute;
    std::vector<emulator::Recompute> by_rank;  ///< what the stages of each rank recompute, where it is by rank
    std::string why_not;                       ///< not empty: there is no such schedule, and why
    std::vector<TargetBaseline> baselines;     ///< what its users would take without a plan
    bool cut_short = false;                    ///< time ended the choice of its partition

    /// The fastest of a policy; null if it applies nowhere.
    const TargetBaseline* best(std::string_view policy) const;
};

/// How the microbatches were given to the replicas. A load is what partition::microbatch_costs adds up to.
struct ReplicaLoads {
    Duration largest{}, mean{};
    Duration largest_in_turn{};  ///< if every replica took microbatches in turn
    bool by_loading = false;     ///< the loader decides, and they were dealt by what it takes, too
};

struct Plan {
    std::vector<ReplicaPlan> replicas;  ///< all with the same partition
    ReplicaLoads loads;
    Duration makespan{};      ///< of the slowest replica
    Duration lower_bound{};   ///< the largest of the replicas'
    std::size_t slowest = 0;  ///< the replica with the makespan: the one that is pictured
    Duration step{};          ///< makespan and what follows all ranks (optimizer)
    double mfu = 0;           ///< model FLOPs / (GPUs * bf16 peak * step)
    double model_flops = 0;   ///< of all replicas
    emulator::TimeShares shares;
    emulator::InSituFactors in_situ;   ///< that all costs hold
    PartitionChoice partition_choice;  ///< what the partition was chosen on, and from
    Ladder ladder;                     ///< of Wanted::start the rungs that flags launch, all by ladder_of(); else none
    std::optional<Input> input{};      ///< of its advised rung, else of the plan: where a loader was given (ladder.hpp)
    bool is_opponents = false;         ///< the plan is an opponent's: nothing faster was found, or nothing was searched
    bool is_searched = true;           ///< false: no order was asked for, and the plan is what its target launches
    bool is_padded = false;            ///< its target pads what it launches so
    Baselines baselines;
    std::vector<TargetPlan> targets;  ///< one for each target that has a schedule of its own
    RobustChoice choice;              ///< among what was found
    /// Against the opponent that is pictured first, then the fastest policy on the plan's partition; none: there is
    /// neither, or it was not wanted.
    std::optional<Robustness> robustness;
    bool lacks_robustness = false;  ///< it was wanted, and there was no time for it

    const partition::Partition& partition() const { return replicas.front().cut.partition; }

    /// Throws Error{input} for a target that has no schedule of its own, as "free".
    const TargetPlan& target(std::string_view name) const;
};

/// Of its replicas.
[[nodiscard]] Duration mean_makespan(const Plan& plan);

/// How much is wanted: sweeps and services need one partition in milliseconds.
struct Wanted {
    bool targets = true;                                ///< a schedule for every other target of targets()
    bool robustness = true;                             ///< replays under wrong costs
    bool opponents = true;                              ///< what engineers run beside it
    const struct Opponents* known_opponents = nullptr;  ///< of the job, chosen before; null: chosen here
    /// Of a plan with a ladder, its rungs that are known: the opponents are its, and the rungs that flags launch are
    /// made, and told to `on_ladder`, before an order is searched, whatever time there is. Null: no ladder.
    const struct LadderStart* start = nullptr;
    std::vector<const class StaticOrder*> orders{};  ///< of the job, on its partition: searches begin with them, too
    std::vector<std::string> policies{};  ///< to compare with and start from; none: all of search::policies()
    bool search = true;                   ///< else the fastest of these policies is taken as it is
    std::vector<std::size_t> replicas{};  ///< that are planned, sorted, of those that there are; none: all
    bool only_examined = false;           ///< of all those alone that are looked at closely: the most loaded ones
    /// Then the plan remembers of other replicas than those that are examined, and the slowest of the others, neither
    /// their steps nor when their tasks start.
    OnReplica on_replica{};
    Duration on_replica_takes{};  ///< for a task of a replica: time that its search leaves
    OnDoing on_doing{};           ///< is told what the plan is at
    OnLadder on_ladder{};         ///< with `start`
};

}  // namespace pipeweaver::planner
