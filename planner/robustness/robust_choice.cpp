#include "pipeweaver/planner/robust_choice.hpp"

#include "pipeweaver/emulator/ports.hpp"
#include "planner/robustness/perturbed_costs.hpp"

#include <algorithm>
#include <tuple>

namespace pipeweaver::planner {

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
