// Which of several schedules to take that are about as good, if the costs they were made from may be wrong.
//
// A makespan that is 0.1 % shorter says little where costs are off by several per cent: both schedules are replayed
// under the same wrong costs (robustness.hpp), and the one that stands up to them is taken.
//
// The figures that are reported come from other draws than those that decided, so that they are not flattered by the
// choice.
#pragma once

#include "pipeweaver/planner/robustness.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/search/search.hpp"

namespace pipeweaver::planner {

/// How a side did. Wins: replays in which no other side was faster.
struct Standing {
    Duration makespan{};  ///< with the costs as they are
    Duration median{};
    int wins = 0;
};

struct Judgement {
    std::size_t taken = 0;
    std::vector<Standing> standings;  ///< one for each side
};

/// Compares the sides in the draws that follow those of robustness(), as many, paired whatever `draws` says. The first
/// is only given up for a side that is clearly more often faster than it than slower: by two standard deviations of a
/// fair coin's. Of several such the smallest median or the most wins decide; ties go to the smaller makespan, then to
/// the earlier. Pre: at least one side.
[[nodiscard]] Judgement judge(std::span<const Side> sides, bool by_median, const Draws& draws,
                              const Executor& execute = in_order);

/// What was taken, and what that gives up and gains.
struct RobustChoice {
    ChoiceRule rule;
    std::size_t alternatives = 0;  ///< schedules near enough to the smallest makespan, of all replicas and partitions
    bool other = false;            ///< another schedule was taken than that of the smallest makespan
    Duration smallest{};           ///< the smallest makespan found
    Gain over_smallest;  ///< in draws 0 to 199, paired, of the schedule of the smallest makespan; if another was taken
};

}  // namespace pipeweaver::planner
