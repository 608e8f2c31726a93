#include "planner/opponents/opponent_run.hpp"

#include "planner/opponents/built_steps.hpp"

namespace pipeweaver::planner {

std::optional<OpponentRun> pipelined_opponent(const Job& job, const Opponents& opponents, const Baselines& baselines,
                                              const std::vector<Microbatches>& replicas) {
    const OpponentWay* best = nullptr;
    OpponentRun run;
    for (const Baseline& one : baselines.all) {
        if (!one.way || !one.on_own_ranks) continue;
        if (best && one.step >= run.baseline.step) continue;
        best = &opponents.ways[*one.way];
        run.baseline = one;
    }
    if (!best) return std::nullopt;
    BuiltSteps steps(*best, replicas, target(job.target));
    std::string why_not;
    for (std::size_t r = 0; r < replicas.size(); ++r) {
        auto found = steps.scheduled(r, best->policy, run.baseline.recompute, why_not);
        if (!found) return std::nullopt;
        run.steps.push_back(steps.take(r));
        run.schedules.push_back(std::move(found->schedule));
    }
    return run;
}

}  // namespace pipeweaver::planner
