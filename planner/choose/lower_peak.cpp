#include "planner/choose/lower_peak.hpp"

#include "pipeweaver/planner/robust_choice.hpp"
#include "pipeweaver/search/lower_memory.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

// Of about 10 ms. `solve --then memory` takes ten times as many, for what a plan's headroom makes little of.
constexpr std::uint64_t most_rounds = 8;

// The least full of what was found with this makespan.
search::Found least_full(const Replayer& replayer, const search::Found& found) {
    search::Found least;
    least.schedule = found.schedule;
    least.replay = found.replay;
    least.strategy = found.strategy;
    least.rounds = found.rounds;
    const Problem& problem = replayer.problem();
    for (const search::FoundSchedule& known : found.alternatives) {
        if (known.makespan != found.replay.makespan) continue;
        Replay replay = replayer.replay(known.schedule);
        if (search::largest_peak(problem, replay) >= search::largest_peak(problem, least.replay)) continue;
        least.schedule = known.schedule;
        least.replay = std::move(replay);
        least.strategy = known.strategy;
    }
    return least;
}

}  // namespace

void lower_peak(const StepProblem& step, search::Found& found, const search::Options& options, const Executor& execute,
                const search::KeepGoing& keep_going) {
    const auto stops = [&](const search::Progress& progress) {
        return keep_going && keep_going(progress) ? std::optional(StopReason::stopped) : std::nullopt;
    };
    if (stops({})) return;
    const Problem& problem = step.problem;
    const Replayer replayer(problem);
    search::Found lower = least_full(replayer, found);
    const std::uint64_t rounds = std::min(most_rounds, options.max_rounds.value_or(most_rounds));
    search::lower_memory(replayer, options, execute, lower, stops, rounds);
    if (search::largest_peak(problem, lower.replay) >= search::largest_peak(problem, found.replay)) return;
    const std::vector<Side> sides{{{&step, &*lower.schedule}}, {{&step, &*found.schedule}}};
    if (judge(sides, false, options.seed, execute).taken != 0) return;
    found.schedule = std::move(lower.schedule);
    found.replay = std::move(lower.replay);
    found.strategy = std::move(lower.strategy);
}

}  // namespace pipeweaver::planner
