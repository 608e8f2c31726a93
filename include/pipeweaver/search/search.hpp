// Finds a schedule of small makespan within every rank's memory, and says how far from optimal it can be at most.
//
// Threads      work runs on the caller's Executor.
// Determinism  (problem, options) decide the result, whatever the executor. Time decides only how many rounds are run:
//              `max_rounds` with the number a stopped search reports gives its result again.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/search/found.hpp"
#include "pipeweaver/search/options.hpp"

#include <string>
#include <vector>

namespace pipeweaver::search {

struct StrategyEntry {
    std::string name;
    std::string about;  ///< one line
};

/// All strategies, the default one first.
[[nodiscard]] const std::vector<StrategyEntry>& strategies();

/// Searches for the shortest schedule. `keep_going` is asked from the calling thread between rounds (a round lasts
/// about 10 ms at most). Throws Error{input} for an unknown strategy, naming the nearest. Without `max_rounds` it ends
/// when `patience` says so (`no_gain`), without `keep_going`, too, after `default_rounds`. Found.rounds does not count
/// the initial schedules (given ones, policies, list schedules) that are tried first: 0 rounds give the best of them,
/// which are all in a problem of up to some 5,000 tasks; in larger ones the others take rounds, too. Throws
/// Error{input} for rules that contradict the problem.
[[nodiscard]] Found solve(const schedule::Replayer& replayer, const Options& options, const Executor& execute,
                          const KeepGoing& keep_going = {});

/// The solution file of what was found. Pre: found.schedule.
[[nodiscard]] schedule::Solution solution(const Found& found, const schedule::Problem& problem, std::string sha256);

}  // namespace pipeweaver::search
