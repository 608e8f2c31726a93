#include "pipeweaver/search/lower_memory.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/search/standing.hpp"
#include "search/improve/anneal.hpp"
#include "search/improve/initial_schedules.hpp"
#include "search/tuning.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace pipeweaver::search {

namespace {

// Peaks are fractions of this: the rank's capacity; where some rank has none, the largest peak at the beginning.
std::vector<double> units_of(const schedule::Problem& problem, const schedule::Replay& replay) {
    Bytes most{1};
    for (const Bytes peak : replay.peak) most = std::max(most, peak);
    const bool limited = std::all_of(problem.ranks.begin(), problem.ranks.end(), [](const schedule::Rank& rank) {
        return rank.capacity && rank.capacity->count > 0;
    });
    std::vector<double> units;
    for (const schedule::Rank& rank : problem.ranks)
        units.push_back(static_cast<double>(limited ? rank.capacity->count : most.count));
    return units;
}

struct Value {
    double largest = 0, sum = 0;
    double area = 0;  // average level: lets a step count that lowers only one of several equal peaks

    double energy(std::size_t ranks) const {
        return largest + tuning.memory.sum_weight * sum / static_cast<double>(ranks) +
               tuning.memory.area_weight * area / static_cast<double>(ranks);
    }
    bool better_than(const Value& other) const { return std::pair(largest, sum) < std::pair(other.largest, other.sum); }
};

class Slot {
public:
    Slot(const Flat& flat, const StepChoices& choices, const std::vector<double>& units, std::int64_t limit)
        : flat_(flat), choices_(choices), units_(units), limit_(limit), current_(flat) {}

    void load(const Candidate& candidate) {
        current_.load(candidate.sequence, candidate.mode);
        value_ = best_value_ = measure();
        store(current_, best_);
    }

    void follow(const Slot& other) {
        current_.copy(other.current_);
        value_ = other.value_;
    }

    void anneal(std::uint64_t seed, std::uint64_t first, std::uint64_t count, double temperature) {
        for (std::uint64_t k = 0; k < count; ++k) {
            Random random(seed, first + k);
            if (!propose(random)) continue;
            const Value now = measure();
            const double allowance = -temperature * std::log(1.0 - random.uniform());
            if (now.energy(flat_.ranks()) > value_.energy(flat_.ranks()) + allowance) {
                current_.take_back();
                continue;
            }
            current_.keep();
            value_ = now;
            if (!now.better_than(best_value_)) continue;
            best_value_ = now;
            store(current_, best_);
        }
    }

    const Candidate& best() const { return best_; }
    const Value& best_value() const { return best_value_; }
    const Value& value() const { return value_; }

private:
    // All from prefix sums: memory depends on the ranks' orders alone.
    Value measure() const {
        Value value;
        for (std::uint32_t rank = 0; rank < flat_.ranks(); ++rank) {
            const IncrementalSchedule::Levels levels = current_.levels(rank);
            const double base = static_cast<double>(flat_.problem().ranks[rank].base.count);
            const double peak = (base + static_cast<double>(levels.peak)) / units_[rank];
            value.largest = std::max(value.largest, peak);
            value.sum += peak;
            value.area += (base + levels.average) / units_[rank];
        }
        return value;
    }

    bool propose(Random& random) {
        if (!choices_.pairs.empty() && random.below(100) < tuning.memory.mode_percent) return change_mode(random);
        const auto task = static_cast<std::uint32_t>(random.below(flat_.tasks()));
        const std::int64_t net = flat_.cost(task, 0).net();
        // What takes memory goes later, what gives it back earlier; now and then the other way.
        const bool earlier =
            net == 0 ? random.below(2) == 0 : (net < 0) != (random.below(tuning.memory.against_one_in) == 0);
        const std::uint64_t reach =
            random.below(tuning.memory.far_one_in) == 0 ? tuning.memory.far : tuning.memory.near;
        const auto by = static_cast<std::int64_t>(1 + random.below(reach));
        const std::uint32_t other = current_.neighbour(task, earlier ? -by : by);
        if (other == IncrementalSchedule::no_task) return false;
        return earlier ? current_.propose_before(task, other, limit_) : current_.propose_after(task, other, limit_);
    }

    bool change_mode(Random& random) {
        const std::uint32_t pair = choices_.pairs[random.below(choices_.pairs.size())];
        const std::size_t modes = flat_.problem().pairs[pair].modes.size();
        const auto mode = static_cast<std::uint32_t>((current_.mode()[pair] + 1 + random.below(modes - 1)) % modes);
        const IncrementalSchedule::ModeChange change{pair, mode};
        return current_.propose_modes({&change, 1}, limit_);
    }

    const Flat& flat_;
    const StepChoices& choices_;
    const std::vector<double>& units_;
    std::int64_t limit_;
    IncrementalSchedule current_;
    Value value_, best_value_;
    Candidate best_;
};

std::uint64_t rounds_for(const Found& found) {
    if (found.stop_reason == schedule::StopReason::optimal) return tuning.memory.rounds_of_optimal;
    return tuning.memory.least_rounds + found.rounds / tuning.memory.found_rounds_per_round;
}

// The worse half of the slots goes on from where the better half stands.
void follow_the_better(std::vector<std::unique_ptr<Slot>>& all, std::size_t ranks) {
    std::vector<std::size_t> standing(all.size());
    for (std::size_t s = 0; s < all.size(); ++s) standing[s] = s;
    std::stable_sort(standing.begin(), standing.end(), [&](std::size_t a, std::size_t b) {
        return all[a]->value().energy(ranks) < all[b]->value().energy(ranks);
    });
    for (std::size_t k = 0; k < all.size() / 2; ++k) all[standing[all.size() - 1 - k]]->follow(*all[standing[k]]);
}

}  // namespace

void take_known(const schedule::Replayer& replayer, const Options& options, std::span<const FoundSchedule> known,
                Found& found) {
    const schedule::Problem& problem = replayer.problem();
    const Flat flat(replayer, options.rules);
    const Duration before = found.replay.makespan;
    for (const FoundSchedule& one : known) {
        if (one.makespan > found.replay.makespan || !given_schedule(flat, one.schedule).valid()) continue;
        schedule::Replay replay = replayer.replay(one.schedule);
        if (!(standing_of(problem, replay) < standing_of(problem, found.replay))) continue;
        found.schedule = one.schedule;
        found.replay = std::move(replay);
        found.strategy = one.strategy;
    }
    if (found.replay.makespan == before) return;
    if (found.replay.makespan == found.bound) found.stop_reason = schedule::StopReason::optimal;
    found.history.push_back({found.rounds, found.evaluations, found.replay.makespan, found.bound, found.strategy});
}

void lower_memory(const schedule::Replayer& replayer, const Options& options, const Executor& execute, Found& found,
                  const KeepGoing& keep_going, std::optional<std::uint64_t> most_rounds) {
    const Flat flat(replayer, options.rules);
    const Candidate begin = given_schedule(flat, *found.schedule);
    PIPEWEAVER_ASSERT(begin.valid());
    const StepChoices choices(flat);
    const auto units = units_of(flat.problem(), found.replay);
    std::vector<std::unique_ptr<Slot>> all;
    for (std::size_t s = 0; s < tuning.memory.slots; ++s) {
        all.push_back(std::make_unique<Slot>(flat, choices, units, found.replay.makespan.count()));
        all.back()->load(begin);
    }
    const std::uint64_t rounds = std::min(rounds_for(found), most_rounds.value_or(UINT64_MAX));
    const std::uint64_t each =
        std::max(tuning.memory.least_steps, tuning.memory.round_work / (flat.tasks() + tuning.memory.cost_of_step));
    for (std::uint64_t round = 0; round < rounds && flat.tasks() > 0; ++round) {
        if (keep_going && keep_going({found.rounds, found.evaluations, found.replay.makespan, found.bound,
                                      found.strategy}) == schedule::StopReason::stopped)
            break;
        const double along = static_cast<double>(round) / static_cast<double>(rounds);
        const double temperature = tuning.memory.hot * std::pow(tuning.memory.cold / tuning.memory.hot, along);
        execute(tuning.memory.slots,
                [&](std::size_t s) { all[s]->anneal(options.seed, found.evaluations + s * each, each, temperature); });
        found.evaluations += tuning.memory.slots * each;
        if ((round + 1) % tuning.memory.sync_rounds == 0) follow_the_better(all, flat.ranks());
    }
    const Slot* best = all.front().get();
    for (const auto& slot : all)
        if (slot->best_value().better_than(best->best_value())) best = slot.get();
    found.schedule = as_schedule(flat, best->best().sequence, best->best().mode);
    const Duration before = found.replay.makespan;
    found.replay = replayer.replay(*found.schedule);
    PIPEWEAVER_ASSERT(found.replay.outcome == schedule::Outcome::completed);
    PIPEWEAVER_ASSERT(found.replay.makespan <= before);
    static_cast<void>(before);
}

}  // namespace pipeweaver::search
