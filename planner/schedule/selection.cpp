#include "planner/schedule/selection.hpp"

#include "pipeweaver/emulator/ports.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

bool is_proven(const search::Found& found) { return found.replay.makespan == found.bound; }

// How long a makespan may be that is taken.
Duration longest_allowed(const search::Found& found, std::optional<Duration> limit, const ChoiceRule& rule) {
    const Duration smallest = found.replay.makespan;
    Duration longest = smallest;
    if (rule.by_median || !is_proven(found))
        longest += Duration{static_cast<std::int64_t>(rule.within * static_cast<double>(smallest.count()))};
    return limit ? std::max(smallest, std::min(longest, *limit)) : longest;
}

void take(const StepProblem& step, search::Found& found, std::size_t alternative) {
    search::FoundSchedule known = std::move(found.alternatives[alternative]);
    found.alternatives.erase(found.alternatives.begin() + static_cast<std::ptrdiff_t>(alternative));
    found.schedule = std::move(known.schedule);
    found.replay = replay_on_ports(step, *found.schedule).replay;
    found.strategy = std::move(known.strategy);
    if (found.stop_reason == StopReason::optimal && !is_proven(found)) found.stop_reason = StopReason::no_gain;
}

}  // namespace

RobustChoice choose(const StepProblem& step, search::Found& found, std::optional<Duration> limit,
                    const ChoiceRule& rule, std::uint64_t seed, const Executor& execute) {
    RobustChoice choice;
    choice.rule = rule;
    choice.smallest = found.replay.makespan;
    const Duration longest = longest_allowed(found, limit, rule);
    std::vector<Side> sides{{{&step, &*found.schedule}}};  // alternatives are sorted by makespan
    for (const search::FoundSchedule& known : found.alternatives)
        if (known.makespan <= longest) sides.push_back({{&step, &known.schedule}});
    choice.alternatives = sides.size() - 1;
    if (sides.size() == 1) return choice;
    const std::size_t best = judge(sides, rule.by_median, {seed}, execute).taken;
    if (best == 0) return choice;
    // One that is better than all others may still not be clearly better than the first alone.
    const std::vector<Side> both{sides.front(), sides[best]};
    if (judge(both, rule.by_median, {seed}, execute).taken == 0) return choice;
    choice.other = true;
    const Draws draws{.seed = seed, .paired = true};
    choice.over_smallest = robustness(both.back(), {both.data(), 1}, draws, execute).against.front();
    take(step, found, best - 1);
    return choice;
}

}  // namespace pipeweaver::planner
