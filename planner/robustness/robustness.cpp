#include "pipeweaver/planner/robustness.hpp"

#include "planner/robustness/perturbed_costs.hpp"

#include <algorithm>

namespace pipeweaver::planner {

namespace {

// How many draws some rank of some replica does not fit into.
int out_of_memory(const DrawnFactors& drawn, std::span<const Scheduled> plan, std::optional<Bytes> memory,
                  const Executor& execute) {
    std::vector<UncertainMemory> replicas;
    for (const Scheduled& one : plan) replicas.emplace_back(one, memory);
    std::vector<char> exceeded(drawn.size());
    execute(drawn.size(), [&](std::size_t i) {
        const Factors factors = drawn[i];
        exceeded[i] = std::any_of(replicas.begin(), replicas.end(),
                                  [&](const UncertainMemory& one) { return one.exceeded(factors); });
    });
    return static_cast<int>(std::count(exceeded.begin(), exceeded.end(), 1));
}

Gain gain(const Makespans& makespans, std::size_t side) {
    Gain result;
    std::vector<double> gains;
    for (const auto& draw : makespans) {
        result.wins += draw.front() < draw[side] ? 1 : 0;
        result.losses += draw.front() > draw[side] ? 1 : 0;
        gains.push_back(static_cast<double>(draw[side].count()) / static_cast<double>(draw.front().count()));
    }
    std::sort(gains.begin(), gains.end());
    result.p10 = at_percent(gains, 10);
    result.p50 = at_percent(gains, 50);
    result.p90 = at_percent(gains, 90);
    return result;
}

}  // namespace

Robustness robustness(std::span<const Scheduled> plan, std::span<const Side> baselines, const Draws& draws,
                      const Executor& execute) {
    std::vector<Side> sides{Side(plan.begin(), plan.end())};
    sides.insert(sides.end(), baselines.begin(), baselines.end());
    const DrawnFactors drawn(sides, draws, 0);
    const auto makespans = makespans_in(drawn, sides, draws.paired, execute);

    Robustness result;
    result.replays = draws.replays;
    const auto own = sorted_makespans(makespans, 0);
    result.p10 = at_percent(own, 10);
    result.p50 = at_percent(own, 50);
    result.p90 = at_percent(own, 90);
    result.out_of_memory = out_of_memory(drawn, plan, draws.memory, execute);
    for (std::size_t side = 1; side < sides.size(); ++side) result.against.push_back(gain(makespans, side));
    return result;
}

}  // namespace pipeweaver::planner
