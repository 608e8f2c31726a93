// Every partition with every policy, on every replica: what a plan is compared with and searched from.
#pragma once

#include "pipeweaver/planner/opponents.hpp"
#include "planner/evaluate/evaluate.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::planner {

/// One partition of one replica: what is known of it and, if it was searched, what was found.
struct Compared {
    Evaluation known;
    search::Found found{};
    std::optional<emulator::StepProblem> parts{};  ///< the step with split backwards, if `found` is of that

    const partition::Partition& partition() const { return known.cut.partition; }
    const emulator::StepProblem& searched() const { return parts ? *parts : known.cut.step; }
};

/// Per replica, per partition.
using Comparison = std::vector<std::vector<Compared>>;

/// Bounds of many replicas are quick ones (sharpen() below).
inline search::BoundEffort bounds_of(std::size_t replicas) {
    return replicas > most_replicas_judged ? search::BoundEffort::quick : search::BoundEffort::full;
}

/// Policies: as in EvaluationWanted. Of several errors, the first by replica, then partition, is thrown, whoever ran
/// when; Error{input} where a replica is too large to plan.
[[nodiscard]] Comparison compare(const Request& request, const std::vector<partition::Partition>& partitions,
                                 const std::vector<Microbatches>& replicas, const std::vector<std::string>& policies,
                                 const Executor& execute);

/// A policy counts where it applies on every replica, with the time of the slowest; a bound of any replica is one of the
/// step. The chain to picture the plan beside is left open. Pre: `policies` as compare() had them.
[[nodiscard]] Baselines baselines_of(const Comparison& compared, const std::vector<std::string>& policies);

/// Gives these replicas, whose bounds were quick ones, the full bounds of partition `best`, and the baselines on it.
void sharpen(Comparison& compared, std::size_t best, const std::vector<std::size_t>& replicas, Split split,
             Baselines& baselines, const Executor& execute);

/// Of the policies on the plan's partition; null: there is none. Pre: `baselines` outlives the answer.
[[nodiscard]] const Baseline* fastest_policy(const Baselines& baselines);

/// The opponent as it runs on one of its replicas, with the lags of its transfers.
[[nodiscard]] std::optional<BaselinePlan> pictured(const OpponentRun& run, std::size_t replica);

/// The plan (partition `best`) against an opponent and a policy on its own partition if costs are wrong, on these of its
/// replicas; none without either.
[[nodiscard]] std::optional<Robustness> robustness_of(const Comparison& compared, std::size_t best,
                                                      const std::vector<std::size_t>& judged,
                                                      const std::optional<OpponentRun>& opponent,
                                                      const Baseline* policy, const Draws& draws,
                                                      const Executor& execute);

}  // namespace pipeweaver::planner
