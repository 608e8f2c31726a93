#include "pipeweaver/emulator/time_shares.hpp"

#include <numeric>

namespace pipeweaver::emulator {

using namespace schedule;

void add_shares(const StepProblem& step, const Schedule& schedule, TimeShares& sum) {
    const auto add = [&](const PassCost& cost, double times) {
        for (std::size_t c = 0; c < operator_classes; ++c)
            for (std::size_t b = 0; b < PassCost::bases; ++b)
                sum.by[c][b] += times * static_cast<double>(cost.shares[c][b].time.count());
    };
    for (const std::uint32_t cost : step.cost) add(step.costs[cost], 1);
    for (std::size_t k = 0; k < step.problem.pairs.size(); ++k) {
        const Pair& pair = step.problem.pairs[k];
        const PassCost& again = step.recomputed_by(index(pair.backward));
        if (again.total() == Duration{0}) continue;
        const Duration extra = repeated_time(pair, schedule.mode[k]);
        add(again, static_cast<double>(extra.count()) / static_cast<double>(again.total().count()));
    }
}

void normalise(TimeShares& shares) {
    double sum = 0;
    for (const auto& row : shares.by) sum = std::accumulate(std::begin(row), std::end(row), sum);
    if (sum == 0) return;
    for (auto& row : shares.by)
        for (double& share : row) share /= sum;
}

TimeShares& TimeShares::operator+=(const TimeShares& other) {
    for (std::size_t c = 0; c < operator_classes; ++c)
        for (std::size_t b = 0; b < PassCost::bases; ++b) by[c][b] += other.by[c][b];
    return *this;
}

double TimeShares::of(costdb::Basis basis) const {
    double sum = 0;
    for (const auto& row : by) sum += row[static_cast<std::size_t>(basis)];
    return sum;
}

}  // namespace pipeweaver::emulator
