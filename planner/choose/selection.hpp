// Which partition is searched, and which of the schedules that were found becomes the plan.
#pragma once

#include "pipeweaver/planner/robust_choice.hpp"
#include "planner/choose/comparison.hpp"
#include "planner/choose/split_search.hpp"

namespace pipeweaver::planner {

/// Which partitions are worth a search: the first (modality-aware if there is one) and the best of the others.
[[nodiscard]] std::vector<std::size_t> worth_searching(const Comparison& compared);

/// Schedules of a step for a search to begin with, beside those of policies.
using MoreStarts = std::function<std::vector<schedule::Schedule>(const emulator::StepProblem&)>;

/// What a search in a plan is like.
struct SearchWanted {
    ChoiceRule rule;  ///< that near schedules are handed over for
    MoreStarts more = {};
    search::BoundEffort bounds = search::BoundEffort::full;
};

/// Fills in `compared.found`.
void search_in(Compared& compared, const Request& request, const SearchWanted& wanted, const Executor& execute,
               const Limits& limits);

/// A partition, and how its schedules were chosen.
struct Selection {
    std::size_t partition = 0;
    RobustChoice choice;
};

/// The searched partition whose slowest replica is fastest (ties to the earlier), or another schedule near to it that
/// stands up better to wrong costs: then `found` of its replicas is changed to what was taken. No makespan becomes
/// longer than `limit`, the fastest known schedule's. What is proven optimal is given up only by a rule by median.
/// Throws Error{limit} where no partition has a schedule.
[[nodiscard]] Selection select(Comparison& compared, const std::vector<std::size_t>& searched,
                               std::optional<Duration> limit, const ChoiceRule& rule, std::uint64_t seed,
                               const Executor& execute);

/// The same for one problem.
[[nodiscard]] RobustChoice choose(const emulator::StepProblem& step, search::Found& found,
                                  std::optional<Duration> limit, const ChoiceRule& rule, std::uint64_t seed,
                                  const Executor& execute);

/// Of partition `best`; ties go to the earlier.
[[nodiscard]] std::size_t slowest_replica(const Comparison& compared, std::size_t best);

/// The `most` slowest, by number.
[[nodiscard]] std::vector<std::size_t> slowest_replicas(const Comparison& compared, std::size_t best, std::size_t most);

}  // namespace pipeweaver::planner
