#include "planner/perturbed.hpp"

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/schedule/fixed_order.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

constexpr double half_width_to_sigma = 1 / 1.645;  // nine of ten lie within 1.645 standard deviations
constexpr std::size_t kinds = operator_classes * PassCost::bases;

using Factors = std::array<double, kinds>;

/// Used again from replay to replay.
struct WorkSpace {
    std::vector<std::int64_t> duration, end;
};

/// A schedule with the share of every task's time that each kind of cost has.
class Perturbed {
public:
    explicit Perturbed(const Scheduled& scheduled) : order_(Replayer(scheduled.step->problem), *scheduled.schedule) {
        const StepProblem& step = *scheduled.step;
        const std::size_t tasks = order_.durations().size();
        std::vector<double> again(tasks, 0);  // recomputation, as a multiple of step.recompute
        for (std::size_t k = 0; k < step.problem.pairs.size(); ++k) {
            const Pair& pair = step.problem.pairs[k];
            const Duration whole = step.recompute[index(pair.backward)].total();
            if (whole == Duration{0}) continue;
            const Duration extra = pair.modes[scheduled.schedule->mode[k]].backward - pair.modes.front().backward;
            again[index(pair.backward)] = static_cast<double>(extra.count()) / static_cast<double>(whole.count());
        }
        for (std::size_t i = 0; i < tasks; ++i) {
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

    Duration makespan(const Factors& factors, WorkSpace& space) const {
        space.duration.resize(order_.durations().size());
        for (std::size_t i = 0; i < space.duration.size(); ++i) {
            double more = 0;
            for (std::size_t s = first_[i]; s < first_[i + 1]; ++s)
                more += shares_[s].time_ns * (factors[shares_[s].kind] - 1);
            space.duration[i] = std::max<std::int64_t>(1, order_.durations()[i] + std::llround(more));
        }
        return order_.makespan(space.duration, space.end);
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

using Replicas = std::vector<Perturbed>;

Duration slowest(const Replicas& replicas, const Factors& factors, WorkSpace& space) {
    Duration most{};
    for (const Perturbed& one : replicas) most = std::max(most, one.makespan(factors, space));
    return most;
}

// Standard deviation of each kind of cost, over all schedules.
Factors sigmas(const std::vector<Replicas>& sides) {
    Factors time{}, sigma{};
    for (const Replicas& side : sides)
        for (const Perturbed& one : side) one.add_to(time, sigma);
    for (std::size_t k = 0; k < kinds; ++k) sigma[k] = time[k] > 0 ? sigma[k] / time[k] * half_width_to_sigma : 0;
    return sigma;
}

}  // namespace

std::vector<std::vector<Duration>> perturbed_makespans(std::span<const Side> sides, std::uint64_t seed,
                                                       const Draws& draws, const Executor& execute) {
    std::vector<Replicas> replicas;
    for (const Side& side : sides) replicas.emplace_back(side.begin(), side.end());
    const Factors sigma = sigmas(replicas);

    constexpr std::size_t at_once = 10;  // replays of a job, which share its work space
    const auto count = static_cast<std::size_t>(draws.count);
    std::vector<std::vector<Duration>> makespan(count);
    execute((count + at_once - 1) / at_once, [&](std::size_t job) {
        WorkSpace space;
        for (std::size_t i = job * at_once; i < std::min(count, (job + 1) * at_once); ++i) {
            const Factors factors = draw(sigma, seed, draws.first + static_cast<int>(i));
            for (const Replicas& side : replicas) makespan[i].push_back(slowest(side, factors, space));
        }
    });
    return makespan;
}

}  // namespace pipeweaver::planner
