#include "pipeweaver/planner/robustness.hpp"

#include "planner/perturbed.hpp"

#include <algorithm>

namespace pipeweaver::planner {

namespace {

Gain gain(const std::vector<std::vector<Duration>>& makespan, std::size_t side) {
    Gain result;
    std::vector<double> gains;
    for (const auto& replay : makespan) {
        result.wins += replay.front() < replay[side] ? 1 : 0;
        result.losses += replay.front() > replay[side] ? 1 : 0;
        gains.push_back(static_cast<double>(replay[side].count()) / static_cast<double>(replay.front().count()));
    }
    std::sort(gains.begin(), gains.end());
    const auto at = [&](std::size_t percent) { return gains[(percent * gains.size() + 99) / 100 - 1]; };
    result.p10 = at(10);
    result.p50 = at(50);
    result.p90 = at(90);
    return result;
}

}  // namespace

Robustness robustness(std::span<const Scheduled> plan, std::span<const Side> baselines, std::uint64_t seed,
                      const Executor& execute, int replays) {
    std::vector<Side> sides{Side(plan.begin(), plan.end())};
    sides.insert(sides.end(), baselines.begin(), baselines.end());
    const auto makespan = perturbed_makespans(sides, seed, {0, replays}, execute);

    Robustness result;
    result.replays = replays;
    for (std::size_t side = 1; side < sides.size(); ++side) result.against.push_back(gain(makespan, side));
    return result;
}

}  // namespace pipeweaver::planner
