// Every partition with every policy, on every replica: what a plan is compared with and searched from.
#pragma once

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/search/bounds.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::planner {

/// One partition with one replica's microbatches: its problem, and what the policies make of it.
struct Compared {
    Candidate candidate;
    std::vector<Baseline> baselines;
    std::vector<NotApplicable> not_applicable;
    std::vector<schedule::Schedule> schedules;   ///< of the baselines
    std::vector<bool> split;                     ///< whether that is of the step with split backwards
    std::optional<Error> refused;                ///< does not fit at all
    search::Bound bound;                         ///< of every schedule that the request allows
    search::Found found;                         ///< if it was searched
    std::optional<emulator::StepProblem> parts;  ///< the step with split backwards, if `found` is of that

    const emulator::StepProblem& searched() const { return parts ? *parts : candidate.step; }

    std::optional<Duration> best_baseline() const;

    /// Of a baseline of this partition. Pre: the policy applies.
    std::size_t place_of(std::string_view policy) const;
};

/// Per replica, per partition.
using Comparison = std::vector<std::vector<Compared>>;

using Parts = std::vector<std::vector<workloads::Microbatch>>;  ///< per replica

/// The partitions that the request leaves open.
[[nodiscard]] std::vector<partition::Partition> partitions(const Request& request, const partition::Workload& workload);

/// What the candidate's step is built from: its partition and units, on the request's model, cluster and layout.
[[nodiscard]] emulator::StepInput step_input(const Request& request, const costdb::CostDatabase& costs,
                                             const Candidate& candidate, std::string name);

/// Throws Error{input} where a replica has more tasks than can be planned in minutes.
void require_plannable(std::size_t microbatches, std::size_t tasks);

/// Of several errors, the first by replica, then partition, is thrown, whoever ran when.
[[nodiscard]] Comparison compare_all(const Request& request, const costdb::CostDatabase& costs,
                                     const std::vector<partition::Partition>& all, const Parts& parts,
                                     const Executor& execute);

[[nodiscard]] bool is_of(const Baseline& baseline, const partition::Partition& partition);

}  // namespace pipeweaver::planner
