#include "planner/opponents/opponent_run.hpp"

#include "planner/way/run.hpp"

#include <algorithm>

namespace pipeweaver::planner {

std::optional<OpponentRun> pipelined_opponent(const Job& job, const Opponents& opponents, const Baselines& baselines,
                                              const std::vector<Microbatches>& replicas) {
    const bool any_launched = std::any_of(baselines.all.begin(), baselines.all.end(), [](const Baseline& one) {
        return one.way && one.on_own_ranks && one.launched;
    });
    const OpponentWay* best = nullptr;
    OpponentRun run;
    for (const Baseline& one : baselines.all) {
        if (!one.way || !one.on_own_ranks || (any_launched && !one.launched)) continue;
        if (best && one.step >= run.baseline.step) continue;
        best = &opponents.ways[*one.way];
        run.baseline = one;
    }
    if (!best) return std::nullopt;
    BuiltWay steps(*best, replicas, target(job.target));
    WayResult ran = steps.run(best->policy, run.baseline.recompute, {.keeps_schedules = true});
    if (!ran.runs()) return std::nullopt;
    run.baseline.recompute = ran.recompute;
    for (std::size_t r = 0; r < replicas.size(); ++r) {
        run.steps.push_back(steps.take(r));
        run.schedules.push_back(std::move(ran.replicas[r].schedule));
    }
    return run;
}

}  // namespace pipeweaver::planner
