// How the search of a problem that no partition made ends: of schedules as fast as each other the least full is taken.
#pragma once

#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/time.hpp"

#include <vector>

namespace pipeweaver::planner {

/// Takes the best of the policies' schedules by search/standing.hpp where it is better than what was found and keeps
/// the target's rules; then a few rounds of annealing for a smaller peak at that makespan (search::lower_memory), a
/// fixed number, so that the search's rounds decide the result. Problems with more than search::most_tasks_in_rounds
/// tasks have no such rounds. Nothing is done where nothing was found, or where whoever waits has ended the search.
/// `policies` are of the problem; `options` are those of the search.
void take_smaller_peak(const schedule::Replayer& replayer, const Target& target, const std::vector<PolicyRun>& policies,
                       const search::Options& options, search::Found& found, const Executor& execute, const Time& time);

}  // namespace pipeweaver::planner
