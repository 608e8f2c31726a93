#include "planner/schedule/lower_peak.hpp"

#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/search/lower_memory.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

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
