#include "pipeweaver/planner/robustness.hpp"

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/fixed_order.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

constexpr double half_width_to_sigma = 1 / 1.645;  // nine of ten lie within 1.645 standard deviations
constexpr std::size_t kinds = operator_classes * PassCost::bases;

using Factors = std::array<double, kinds>;

/// A schedule with the share of every task's time that each kind of cost has.
class Perturbed {
public:
    explicit Perturbed(const Scheduled& scheduled)
        : order_(Replayer(scheduled.step->problem), *scheduled.schedule), duration_(order_.durations().size()) {
        const StepProblem& step = *scheduled.step;
        std::vector<double> again(duration_.size(), 0);  // recomputation, as a multiple of step.recompute
        for (std::size_t k = 0; k < step.problem.pairs.size(); ++k) {
            const Pair& pair = step.problem.pairs[k];
            const Duration whole = step.recompute[index(pair.backward)].total();
            if (whole == Duration{0}) continue;
            const Duration extra = pair.modes[scheduled.schedule->mode[k]].backward - pair.modes.front().backward;
            again[index(pair.backward)] = static_cast<double>(extra.count()) / static_cast<double>(whole.count());
        }
        for (std::size_t i = 0; i < duration_.size(); ++i) {
            first_.push_back(shares_.size());
            add_shares(step.cost[i], step.recompute[i], again[i]);
        }
        first_.push_back(shares_.size());
    }

    /// Adds time and error of each kind.
    void add_to(Factors& time, Factors& error) const {
        for (const Share& share : shares_) {
            time[share.kind] += share.time_ns;
            error[share.kind] += share.error_ns;
        }
    }

    Duration makespan(const Factors& factors) {
        for (std::size_t i = 0; i < duration_.size(); ++i) {
            double more = 0;
            for (std::size_t s = first_[i]; s < first_[i + 1]; ++s)
                more += shares_[s].time_ns * (factors[shares_[s].kind] - 1);
            duration_[i] = std::max<std::int64_t>(1, order_.durations()[i] + std::llround(more));
        }
        return order_.makespan(duration_, ends_);
    }

private:
    struct Share {
        std::size_t kind;
        double time_ns;
        double error_ns;
    };

    void add_shares(const PassCost& cost, const PassCost& recompute, double again) {
        for (std::size_t c = 0; c < operator_classes; ++c)
            for (std::size_t b = 0; b < PassCost::bases; ++b) {
                const auto &own = cost.shares[c][b], &more = recompute.shares[c][b];
                const double time =
                    static_cast<double>(own.time.count()) + again * static_cast<double>(more.time.count());
                if (time > 0) shares_.push_back({c * PassCost::bases + b, time, own.error_ns + again * more.error_ns});
            }
    }

    FixedOrder order_;
    std::vector<std::size_t> first_;
    std::vector<Share> shares_;
    std::vector<std::int64_t> duration_, ends_;
};

// Box and Muller 1958.
double normal(Random& random) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
    return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

Factors draw(const Factors& sigma, std::uint64_t seed, int replay) {
    Random random(seed, static_cast<std::uint64_t>(replay));
    Factors factors{};
    for (std::size_t k = 0; k < kinds; ++k) factors[k] = std::exp(sigma[k] * normal(random));
    return factors;
}

Duration slowest(std::vector<Perturbed>& replicas, const Factors& factors) {
    Duration most{};
    for (Perturbed& one : replicas) most = std::max(most, one.makespan(factors));
    return most;
}

}  // namespace

Robustness robustness(std::span<const Scheduled> plan, std::span<const Scheduled> baseline, std::uint64_t seed,
                      int replays) {
    std::vector<Perturbed> ours(plan.begin(), plan.end()), theirs(baseline.begin(), baseline.end());
    Factors time{}, sigma{};
    for (const auto* side : {&ours, &theirs})
        for (const Perturbed& one : *side) one.add_to(time, sigma);
    for (std::size_t k = 0; k < kinds; ++k) sigma[k] = time[k] > 0 ? sigma[k] / time[k] * half_width_to_sigma : 0;

    Robustness result;
    result.replays = replays;
    std::vector<double> gains;
    for (int i = 0; i < replays; ++i) {
        const Factors factors = draw(sigma, seed, i);
        const Duration mine = slowest(ours, factors), other = slowest(theirs, factors);
        result.wins += mine < other ? 1 : 0;
        gains.push_back(static_cast<double>(other.count()) / static_cast<double>(mine.count()));
    }
    std::sort(gains.begin(), gains.end());
    const auto at = [&](std::size_t percent) { return gains[(percent * gains.size() + 99) / 100 - 1]; };
    result.gain_p10 = at(10);
    result.gain_p50 = at(50);
    result.gain_p90 = at(90);
    return result;
}

}  // namespace pipeweaver::planner
