// Schedules under wrong costs: what a plan stands up to, and which of several to take.
#include "pipeweaver/planner/robustness.hpp"

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/planner/robust_choice.hpp"
#include "pipeweaver/schedule/fixed_order.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <tuple>

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

// Which draws of the endless row that a seed gives. Sets that do not overlap are independent.
struct Draws {
    int first = 0;
    int count = perturbed_replays;
};

// Per draw, the makespan of each side: of its slowest replica. All sides meet the same factors; their spread is that of
// all sides' costs together.
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

constexpr Draws that_decide{perturbed_replays, perturbed_replays};

using Makespans = std::vector<std::vector<Duration>>;  // per draw, per side

Duration median(const Makespans& makespans, std::size_t side) {
    std::vector<Duration> all;
    for (const auto& draw : makespans) all.push_back(draw[side]);
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
    std::nth_element(all.begin(), middle, all.end());
    return *middle;
}

int wins(const Makespans& makespans, std::size_t side) {
    return static_cast<int>(std::count_if(makespans.begin(), makespans.end(), [&](const auto& draw) {
        return draw[side] == *std::min_element(draw.begin(), draw.end());
    }));
}

// Nominal makespan of a side.
Duration makespan(const Side& side) {
    Duration most{};
    for (const Scheduled& one : side) most = std::max(most, replay(one.step->problem, *one.schedule).makespan);
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

search::AlternativesWanted ChoiceRule::near(std::size_t tasks, std::size_t problems) const {
    return {std::clamp<std::size_t>(work / (tasks * problems), 2, most) - 1, within};
}

ChoiceRule choice_rule(bool robust) {
    if (!robust) return {};
    return {true, 0.01, 40, 400'000};
}

Judgement judge(std::span<const Side> sides, bool by_median, std::uint64_t seed, const Executor& execute) {
    const auto makespans = perturbed_makespans(sides, seed, that_decide, execute);
    Judgement result;
    for (std::size_t i = 0; i < sides.size(); ++i)
        result.standings.push_back({makespan(sides[i]), median(makespans, i), wins(makespans, i)});
    const auto key = [&](std::size_t i) {
        const Standing& one = result.standings[i];
        return std::tuple(by_median ? one.median.count() : -one.wins, one.makespan, i);
    };
    for (std::size_t i = 1; i < sides.size(); ++i)
        if (key(i) < key(result.taken) && clearly_faster_than_first(makespans, i)) result.taken = i;
    return result;
}

}  // namespace pipeweaver::planner
