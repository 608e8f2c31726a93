#include "pipeweaver/planner/robustness.hpp"

#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/schedule/memory.hpp"
#include "planner/robustness/perturbed_costs.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <tuple>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

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

constexpr double half_width_to_sigma = 1 / 1.645;  // nine of ten lie within 1.645 standard deviations

// Per task: what its memory mode recomputes, as a multiple of recomputed_by().
std::vector<double> recomputation(const StepProblem& step, const Schedule& schedule) {
    std::vector<double> again(step.problem.tasks.size(), 0);
    for (std::size_t k = 0; k < step.problem.pairs.size(); ++k) {
        const Pair& pair = step.problem.pairs[k];
        const Duration whole = step.recomputed_by(index(pair.backward)).total();
        if (whole == Duration{0}) continue;
        const Duration extra = repeated_time(pair, schedule.mode[k]);
        again[index(pair.backward)] = static_cast<double>(extra.count()) / static_cast<double>(whole.count());
    }
    return again;
}

// Calls visit(kind, time in ns, error in ns) for all that a task spends its time on.
template <class Visit>
void visit_kinds(const StepProblem& step, std::size_t task, double again, const Visit& visit) {
    for (std::size_t c = 0; c < operator_classes; ++c)
        for (std::size_t b = 0; b < PassCost::bases; ++b) {
            const auto &own = step.cost_of(task).shares[c][b], &more = step.recomputed_by(task).shares[c][b];
            const double time = static_cast<double>(own.time.count()) + again * static_cast<double>(more.time.count());
            if (time <= 0) continue;
            const double error = own.error_ns + again * more.error_ns;
            for (const ModulePart& one : step.mixes[step.mix[task]])
                visit(one.module * kinds_of_module + c * PassCost::bases + b, one.part * time, one.part * error);
        }
}

// Box and Muller 1958.
double normal(Random& random) {
    const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
    return radius * std::cos(2 * std::numbers::pi * random.uniform());
}

// The sum of four numbers of 16 bits has the standard deviation 65536 / sqrt(3). It is near to normal, within 3.5 of
// these, and cheap enough for every task of every draw.
double nearly_normal(Random& random) {
    const std::uint64_t bits = random.next();
    const auto sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
    return (static_cast<double>(sum) - 2 * 65535.0) * (std::numbers::sqrt3 / 65536);
}

// Weighted by time.
struct MeanError {
    double time = 0, error = 0;

    void add(double more_time, double more_error) {
        time += more_time;
        error += more_error;
    }
    double sigma() const { return time > 0 ? error / time * half_width_to_sigma : 0; }
};

std::size_t modules_of(std::span<const Side> sides) {
    std::size_t most = 0;
    for (const Side& side : sides)
        for (const Scheduled& one : side)
            for (const ModuleMix& mix : one.step->mixes)
                for (const ModulePart& part : mix) most = std::max(most, part.module + 1);
    return most;
}

// Transfers that wait for a port wait as much longer as transfers take longer.
FixedOrder on_ports(const Scheduled& scheduled) {
    const auto lags = replay_on_ports(*scheduled.step, *scheduled.schedule).lags;
    return {Replayer(scheduled.step->problem, lags), *scheduled.schedule};
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

Spread spread_of(std::span<const Side> sides, const Uncertainty& beyond) {
    std::vector<MeanError> kinds(modules_of(sides) * kinds_of_module);
    MeanError transfers;
    for (const Side& side : sides)
        for (const Scheduled& one : side) {
            const auto again = recomputation(*one.step, *one.schedule);
            for (std::size_t task = 0; task < again.size(); ++task)
                visit_kinds(*one.step, task, again[task],
                            [&](std::size_t kind, double time, double error) { kinds[kind].add(time, error); });
            for (const Transfer& transfer : one.step->transfers) {
                const auto lag = static_cast<double>(one.step->problem.edges[transfer.edge].lag.count());
                transfers.add(lag, lag * transfer.error);
            }
        }
    Spread spread{{}, transfers.sigma(), beyond};
    for (const MeanError& kind : kinds) spread.kind.push_back(kind.sigma());
    return spread;
}

Factors::Factors(const Spread& spread, std::uint64_t seed, std::uint64_t number)
    : beyond_(spread.beyond), seed_(seed), number_(number) {
    for (std::size_t m = 0; m < spread.kind.size() / kinds_of_module; ++m) {
        Random operators = stream(Source::operators, m), module = stream(Source::module, m),
               held = stream(Source::activations, m);
        const double whole = beyond_.module * normal(module);
        for (std::size_t k = 0; k < kinds_of_module; ++k)
            kind.push_back(std::exp(whole + spread.kind[m * kinds_of_module + k] * normal(operators)));
        activations.push_back(std::exp(beyond_.activations * normal(held)));
    }
    Random links = stream(Source::transfer, 0);
    transfer = std::exp(std::hypot(spread.transfer, beyond_.transfer) * normal(links));
}

std::vector<double> Factors::ranks(std::size_t replica, std::size_t count) const {
    Random random = stream(Source::rank, replica);
    std::vector<double> factors(count);
    for (double& one : factors) one = std::exp(beyond_.rank * normal(random));
    return factors;
}

double Factors::Jitter::next() { return 1 + sigma_ * nearly_normal(random_); }

double Factors::schedule(std::uint64_t key) const {
    Random random = stream(Source::schedule, key);
    return std::exp(beyond_.schedule * normal(random));
}

Factors::Jitter Factors::jitter(std::uint64_t key, std::size_t replica) const {
    return {stream(Source::task, mix(key) ^ replica), beyond_.task};
}

Random Factors::stream(Source source, std::uint64_t of) const {
    return Random(seed_, mix(mix(number_) ^ static_cast<std::uint64_t>(source)) ^ of);
}

UncertainSchedule::UncertainSchedule(const Scheduled& scheduled)
    : order_(on_ports(scheduled)), ranks_(scheduled.step->problem.ranks.size()) {
    const StepProblem& step = *scheduled.step;
    const auto again = recomputation(step, *scheduled.schedule);
    for (std::size_t task = 0; task < again.size(); ++task) {
        rank_.push_back(static_cast<std::uint32_t>(index(step.problem.tasks[task].rank)));
        first_.push_back(shares_.size());
        add_shares(step, task, again[task]);
    }
    first_.push_back(shares_.size());
    std::vector<std::int64_t> ends;
    key_ = std::stoull(signature(*scheduled.schedule, order_.makespan(order_.durations(), ends)), nullptr, 16);
}

// Kinds share out how long the task lasts, which is less than all its work where streams run beside each other.
void UncertainSchedule::add_shares(const StepProblem& step, std::size_t task, double again) {
    const std::size_t first = shares_.size();
    const auto lasts = static_cast<double>(order_.durations()[task]);
    double work = 0;
    visit_kinds(step, task, again, [&](std::size_t kind, double time, double) {
        shares_.push_back({static_cast<std::uint32_t>(kind), time});
        work += time;
    });
    for (std::size_t s = first; s < shares_.size(); ++s) shares_[s].time_ns *= lasts / work;
    if (first < shares_.size()) return;
    for (const ModulePart& one : step.mixes[step.mix[task]])  // nothing that takes time: of no kind in particular
        shares_.push_back({static_cast<std::uint32_t>(one.module * kinds_of_module), one.part * lasts});
}

Duration UncertainSchedule::makespan(const Factors& factors, const Run& run, ReplaySpace& space) const {
    const auto ranks = factors.ranks(run.replica, ranks_);
    auto jitter = factors.jitter(run.key, run.replica);
    space.duration.resize(rank_.size());
    for (std::size_t i = 0; i < rank_.size(); ++i) {
        double ns = 0;
        for (std::size_t s = first_[i]; s < first_[i + 1]; ++s)
            ns += shares_[s].time_ns * factors.kind[shares_[s].kind];
        ns *= ranks[rank_[i]] * jitter.next();
        space.duration[i] = std::max<std::int64_t>(1, std::llround(ns));
    }
    return order_.makespan(space.duration, space.end, factors.transfer);
}

UncertainSide::UncertainSide(const Side& side, bool paired) : replicas_(side.begin(), side.end()) {
    if (paired) return;
    for (const UncertainSchedule& one : replicas_) key_ = mix(key_ ^ one.key());
}

Duration UncertainSide::makespan(const Factors& factors, ReplaySpace& space) const {
    Duration slowest{};
    for (std::size_t r = 0; r < replicas_.size(); ++r)
        slowest = std::max(slowest, replicas_[r].makespan(factors, {r, key_}, space));
    return Duration{std::llround(static_cast<double>(slowest.count()) * factors.schedule(key_))};
}

UncertainMemory::UncertainMemory(const Scheduled& scheduled, std::optional<Bytes> memory)
    : scheduled_(scheduled),
      memory_(memory),
      costs_(Replayer(scheduled.step->problem).costs(scheduled.schedule->mode)) {}

bool UncertainMemory::exceeded(const Factors& factors) const {
    const StepProblem& step = *scheduled_.step;
    auto costs = costs_;
    for (std::size_t task = 0; task < costs.size(); ++task) {
        double factor = 0;
        for (const ModulePart& one : step.mixes[step.mix[task]]) factor += one.part * factors.activations[one.module];
        for (Bytes* bytes : {&costs[task].acquire, &costs[task].release})
            bytes->count = std::llround(static_cast<double>(bytes->count) * factor);
    }
    bool exceeded = false;
    for (std::size_t r = 0; r < step.problem.ranks.size(); ++r) {
        const Rank& rank = step.problem.ranks[r];
        const auto limit = memory_ ? memory_ : rank.capacity;
        walk_memory(rank, scheduled_.schedule->order[r], costs,
                    [&](TaskId, Bytes during, Bytes) { exceeded |= limit && during > *limit; });
    }
    return exceeded;
}

DrawnFactors::DrawnFactors(std::span<const Side> sides, const Draws& draws, std::size_t first)
    : spread_(spread_of(sides, draws.beyond)),
      seed_(draws.seed),
      first_(first),
      count_(static_cast<std::size_t>(draws.replays)) {}

Makespans makespans_in(const DrawnFactors& drawn, std::span<const Side> sides, bool paired, const Executor& execute) {
    std::vector<UncertainSide> uncertain;
    for (const Side& side : sides) uncertain.emplace_back(side, paired);

    constexpr std::size_t at_once = 10;  // replays of a job, which share its work space
    const std::size_t count = drawn.size();
    Makespans makespans(count);
    execute((count + at_once - 1) / at_once, [&](std::size_t job) {
        ReplaySpace space;
        for (std::size_t i = job * at_once; i < std::min(count, (job + 1) * at_once); ++i) {
            const Factors factors = drawn[i];
            for (const UncertainSide& side : uncertain) makespans[i].push_back(side.makespan(factors, space));
        }
    });
    return makespans;
}

std::vector<Duration> sorted_makespans(const Makespans& makespans, std::size_t side) {
    std::vector<Duration> all;
    for (const auto& draw : makespans) all.push_back(draw[side]);
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace pipeweaver::planner
