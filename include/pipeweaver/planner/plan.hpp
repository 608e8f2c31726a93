// Plans one step: every partition with every policy, a search where it pays, the best of all taken.
//
// Determinism  With `max_rounds` the plan is a function of the request. With an allowance in time, each search reports
// the
//              rounds it was given.
#pragma once

#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/partition/replicas.hpp"
#include "pipeweaver/planner/layout.hpp"
#include "pipeweaver/planner/robust_choice.hpp"
#include "pipeweaver/planner/robustness.hpp"
#include "pipeweaver/search/search.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// Tasks that a replica's problem may have; policies and bounds take minutes beyond.
inline constexpr std::size_t most_tasks = 50'000;

/// Which backwards may run as an input gradient, that others wait for, and a weight gradient, that may come later.
enum class Split : std::uint8_t {
    automatic,  ///< those that make the step shorter
    never,
    always  ///< all that can be; those whose parts run without a gap are whole again in the end
};

/// A database of a user's own measurements.
struct CostFile {
    std::string path;
    std::string sha256;  ///< of its content, unzipped
};

struct Request {
    workloads::Model model;
    workloads::Cluster cluster;
    emulator::Layout layout;
    std::optional<LayoutChoice> layout_choice;  ///< how it was chosen, for the report; nothing: it was given
    std::vector<workloads::Sample> samples;
    std::vector<workloads::Microbatch> microbatches;  ///< of all replicas
    partition::Sharing sharing = partition::Sharing::balanced;
    std::optional<CostFile> costs;  ///< of the operators; what it lacks, and nothing: the embedded tables
    std::string batch;              ///< where the samples came from, for the report
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> max_rounds;  ///< of each search
    std::string partition;                    ///< "dip", "megatron", "balanced", or empty: all are compared
    Split split = Split::automatic;
    bool for_torch = false;  ///< the schedule under PyTorch's rules is what is wanted: half of the budget, and required
    bool robust = false;     ///< of the schedules found, the one that is fastest in most cases if costs are wrong
};

/// Opens a search that may use `share` of the whole budget, and says when it must end.
using Allowance = std::function<search::KeepGoing(double share)>;

/// A policy on a partition, on every replica: the slowest decides, as it does for the plan.
struct Baseline {
    std::string partition;
    std::int64_t chunks_per_rank = 1;
    std::string policy;
    Duration makespan{};
    Duration bound{};  ///< the largest of the replicas' problems: no makespan of the partition is shorter
    Duration step{};   ///< makespan and the optimizer, which takes longer where a rank has more parameters
};

struct NotApplicable {
    std::string partition;
    std::int64_t chunks_per_rank = 1;
    std::string policy;
    std::string why;
};

/// A partition with the schedule problem of one replica.
struct Candidate {
    partition::Partition partition;
    std::vector<std::vector<std::vector<emulator::Unit>>> units;
    emulator::StepProblem step;
};

struct ReplicaPlan {
    std::vector<std::size_t> microbatches;  ///< indices into Request::microbatches
    Candidate candidate;                    ///< the partition that won
    search::Found found;                    ///< its schedule
};

/// A baseline as it runs on the plan's slowest replica; its `replay` may be shorter than the `baseline`'s makespan,
/// which is of the baseline's own slowest.
struct BaselinePlan {
    Baseline baseline;
    Candidate candidate;
    schedule::Schedule schedule;
    schedule::Replay replay;
};

/// A policy on a chain of padded microbatches, under PyTorch's rules, with the recomputation that is fastest.
struct TorchBaseline {
    std::string partition;
    std::int64_t chunks_per_rank = 1;
    std::string policy;
    emulator::Recompute recompute = emulator::Recompute::none;
    Duration makespan{};
};

/// The schedule under PyTorch's rules; see torch_plan.hpp.
struct TorchPlan {
    Candidate candidate;
    search::Found found;
    RobustChoice choice;
    partition::Padded padding;
    emulator::Recompute recompute = emulator::Recompute::none;  ///< of every stage
    std::string why_not;                                        ///< not empty: there is no such schedule, and why
    std::vector<TorchBaseline> baselines;                       ///< what PyTorch would take without a plan

    /// The fastest of a policy; null if it applies nowhere.
    const TorchBaseline* best(std::string_view policy) const;
};

/// How the microbatches were given to the replicas. A load is what partition::microbatch_costs adds up to.
struct ReplicaLoads {
    Duration largest{}, mean{};
    Duration largest_in_turn{};  ///< if every replica took microbatches in turn
};

/// Share of a schedule's busy time by operator class and basis, recomputation included; sums to 1.
struct TimeShares {
    double by[emulator::operator_classes][emulator::PassCost::bases] = {};
    double of(costdb::Basis basis) const;
};

struct Plan {
    std::vector<ReplicaPlan> replicas;  ///< all with the same partition
    ReplicaLoads loads;
    std::vector<Baseline> baselines;            ///< every pair that applies on all replicas
    std::vector<NotApplicable> not_applicable;  ///< the other pairs
    std::optional<BaselinePlan> best_chain;     ///< the fastest 1f1b or interleaved, on one chain of all modules if
                                                ///< there is one: what the plan is pictured beside
    TorchPlan torch;                            ///< of replica 0
    Duration makespan{};                        ///< of the slowest replica
    Duration lower_bound{};                     ///< the largest of the replicas'
    std::size_t slowest = 0;                    ///< the replica with the makespan: the one that is pictured
    Duration step{};                            ///< makespan and what follows all ranks (optimizer)
    double mfu = 0;                             ///< model FLOPs / (GPUs * bf16 peak * step)
    double model_flops = 0;                     ///< of all replicas
    TimeShares shares;
    emulator::InSituFactors in_situ;  ///< that all costs hold
    RobustChoice choice;              ///< among what was found
    /// Against the fastest baseline first, then best_chain, (megatron, 1f1b), (megatron, interleaved) and
    /// (dip, dual-queue) as far as they apply, each once, with the chunks it is fastest with; nothing: none applies.
    std::optional<Robustness> robustness;
};

/// Pre: at least one microbatch for each replica. Throws Error{limit} if no partition fits (rank, bytes short), and
/// what the modules below throw.
[[nodiscard]] Plan make_plan(const Request& request, const costdb::CostDatabase& costs, const Executor& execute,
                             const Allowance& allowance);

/// The schedule problem of all microbatches in partition dip, without a plan. Pre: one replica. Throws Error{limit} if
/// it does not fit.
[[nodiscard]] Candidate dip_problem(const Request& request, const costdb::CostDatabase& costs);

}  // namespace pipeweaver::planner
