#include "pipeweaver/planner/robustness.hpp"

#include "pipeweaver/emulator/ports.hpp"
#include "planner/robustness/perturbed_costs.hpp"

#include <algorithm>
#include <tuple>

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

namespace {

int wins(const Makespans& makespans, std::size_t side) {
    return static_cast<int>(std::count_if(makespans.begin(), makespans.end(), [&](const auto& draw) {
        return draw[side] == *std::min_element(draw.begin(), draw.end());
    }));
}

// Nominal makespan of a side.
Duration makespan(const Side& side) {
    Duration most{};
    for (const Scheduled& one : side)
        most = std::max(most, emulator::replay_on_ports(*one.step, *one.schedule).replay.makespan);
    return most;
}

// More often faster than slower, by two standard deviations of a fair coin's.
bool clearly_faster_than_first(const Makespans& makespans, std::size_t side) {
    int faster = 0, slower = 0;
    for (const auto& draw : makespans) {
        faster += draw[side] < draw.front() ? 1 : 0;
        slower += draw[side] > draw.front() ? 1 : 0;
    }
    const int more = faster - slower;
    return more > 0 && more * more > 4 * (faster + slower);
}

}  // namespace

Judgement judge(std::span<const Side> sides, bool by_median, const Draws& draws, const Executor& execute) {
    const DrawnFactors drawn(sides, draws, static_cast<std::size_t>(draws.replays));
    const auto makespans = makespans_in(drawn, sides, true, execute);
    Judgement result;
    for (std::size_t i = 0; i < sides.size(); ++i)
        result.standings.push_back(
            {makespan(sides[i]), at_percent(sorted_makespans(makespans, i), 50), wins(makespans, i)});
    const auto key = [&](std::size_t i) {
        const Standing& one = result.standings[i];
        return std::tuple(by_median ? one.median.count() : -one.wins, one.makespan, i);
    };
    for (std::size_t i = 1; i < sides.size(); ++i)
        if (key(i) < key(result.taken) && clearly_faster_than_first(makespans, i)) result.taken = i;
    return result;
}

}  // namespace pipeweaver::planner
