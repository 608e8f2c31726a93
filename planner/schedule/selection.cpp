#include "planner/schedule/selection.hpp"

#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/search/lower_memory.hpp"

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

namespace {

// The least full of what was found and known with this makespan.
search::Found least_full(const StepProblem& step, const search::Found& found,
                         std::span<const search::FoundSchedule> known_before) {
    search::Found least;
    least.schedule = found.schedule;
    least.replay = found.replay;
    least.strategy = found.strategy;
    least.rounds = found.rounds;
    const Problem& problem = step.problem;
    const auto offer = [&](const search::FoundSchedule& known) {
        if (known.makespan != found.replay.makespan) return;
        Replay replay = replay_on_ports(step, known.schedule).replay;
        if (!(search::standing_of(problem, replay) < search::standing_of(problem, least.replay))) return;
        least.schedule = known.schedule;
        least.replay = std::move(replay);
        least.strategy = known.strategy;
    };
    for (const search::FoundSchedule& known : found.alternatives) offer(known);
    for (const search::FoundSchedule& known : known_before) offer(known);
    return least;
}

}  // namespace

void lower_peak(const StepProblem& step, std::span<const search::FoundSchedule> known, search::Found& found,
                const search::Options& options, const ChoiceRule& rule, const Executor& execute, const Time& time) {
    const auto stops = [&](const search::Progress& progress) {
        return time.stop(progress) ? std::optional(StopReason::stopped) : std::nullopt;
    };
    if (stops({})) return;
    const Problem& problem = step.problem;
    search::Found lower = least_full(step, found, known);
    const Problem with_waits = with_lags(problem, replay_on_ports(step, *lower.schedule).lags);
    const std::uint64_t rounds = std::min(peak_rounds, options.max_rounds.value_or(peak_rounds));
    search::lower_memory(Replayer(with_waits), options, execute, lower, stops, rounds);
    lower.replay = replay_on_ports(step, *lower.schedule).replay;  // in another order others wait
    if (lower.replay.makespan > found.replay.makespan) return;
    if (search::largest_peak(problem, lower.replay) >= search::largest_peak(problem, found.replay)) return;
    const std::vector<Side> sides{{{&step, &*found.schedule}}, {{&step, &*lower.schedule}}};
    const auto standings = judge(sides, rule.by_median, {options.seed}, execute).standings;
    const double allowed = rule.by_median ? 0 : rule.within;
    const double longest = (1 + allowed) * static_cast<double>(standings[0].median.count());
    if (static_cast<double>(standings[1].median.count()) > longest) return;
    found.schedule = std::move(lower.schedule);
    found.replay = std::move(lower.replay);
    found.strategy = std::move(lower.strategy);
}

}  // namespace pipeweaver::planner
