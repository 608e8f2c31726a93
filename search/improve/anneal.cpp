#include "search/improve/anneal.hpp"

#include "search/tuning.hpp"

#include <array>
#include <cmath>

namespace pipeweaver::search {

StepChoices::StepChoices(const Flat& flat) : on_rank(flat.ranks()) {
    const auto& all = flat.problem().pairs;
    for (std::uint32_t k = 0; k < all.size(); ++k) {
        if (all[k].modes.size() < 2) continue;
        pairs.push_back(k);
        on_rank[flat.rank_of[index(all[k].forward)]].push_back(k);
    }
}

namespace {

class Steps {
public:
    Steps(const Flat& flat, const StepChoices& choices, IncrementalSchedule& current)
        : flat_(flat), choices_(choices), current_(current) {}

    bool propose(Random& random, std::int64_t limit) {
        const std::uint64_t kind = random.below(100);
        if (!choices_.pairs.empty() && kind < tuning.anneal.mode_percent) return change_mode(random, limit);
        return kind < tuning.anneal.critical_percent ? move_critical(random, limit) : move_any(random, limit);
    }

private:
    // 1, 2, 3, ... with falling probability, now and then far.
    static std::int64_t distance(Random& random) {
        if (random.below(2) == 0) return 1;
        const std::uint64_t reach =
            random.below(tuning.anneal.far_one_in) == 0 ? tuning.anneal.far : tuning.anneal.near;
        return static_cast<std::int64_t>(1 + random.below(reach));
    }

    bool move(std::uint32_t task, bool earlier, std::int64_t by, std::int64_t limit) {
        const std::uint32_t other = current_.neighbour(task, earlier ? -by : by);
        if (other == IncrementalSchedule::no_task) return false;
        return earlier ? current_.propose_before(task, other, limit) : current_.propose_after(task, other, limit);
    }

    // Lets a critical task overtake the one that holds it up, or moves that one after it.
    bool move_critical(Random& random, std::int64_t limit) {
        const auto& critical = current_.critical();
        if (critical.empty()) return move_any(random, limit);
        const std::uint32_t task = critical[random.below(critical.size())];
        const std::int64_t by = distance(random);
        if (random.below(2) == 0) return move(task, true, by, limit);
        return move(current_.neighbour(task, -1), false, by, limit);
    }

    bool move_any(Random& random, std::int64_t limit) {
        const auto task = static_cast<std::uint32_t>(random.below(flat_.tasks()));
        return move(task, random.below(2) == 0, distance(random), limit);
    }

    std::uint32_t any_pair(Random& random) {
        const auto& critical = current_.critical();
        if (!critical.empty() && random.below(2) == 0) {
            const std::uint32_t pair = flat_.pair_of[critical[random.below(critical.size())]];
            if (pair != schedule::Replayer::unpaired && flat_.problem().pairs[pair].modes.size() > 1) return pair;
        }
        return choices_.pairs[random.below(choices_.pairs.size())];
    }

    std::uint32_t other_mode(std::uint32_t pair, Random& random) const {
        const std::size_t modes = flat_.problem().pairs[pair].modes.size();
        const std::uint64_t step = 1 + random.below(modes - 1);
        return static_cast<std::uint32_t>((current_.mode()[pair] + step) % modes);
    }

    // A pair into another mode; where memory is short, another pair that is in its way pays for it.
    bool change_mode(Random& random, std::int64_t limit) {
        const std::uint32_t pair = any_pair(random);
        const IncrementalSchedule::ModeChange first{pair, other_mode(pair, random)};
        if (random.below(2) == 0 && current_.propose_modes({&first, 1}, limit)) return true;
        const auto& neighbours = choices_.on_rank[flat_.rank_of[index(flat_.problem().pairs[pair].forward)]];
        for (int attempt = 0; attempt < tuning.anneal.partner_attempts; ++attempt) {
            const std::uint32_t other = neighbours[random.below(neighbours.size())];
            if (other == pair || !current_.overlap(pair, other)) continue;
            const std::array both{first, IncrementalSchedule::ModeChange{other, other_mode(other, random)}};
            return current_.propose_modes(both, limit);
        }
        return false;
    }

    const Flat& flat_;
    const StepChoices& choices_;
    IncrementalSchedule& current_;
};

// A large step, kept if its value is at most `most`.
bool rebuild(LargeSteps& large, IncrementalSchedule& current, Random& random, double weight, double most) {
    if (!large.rebuild.propose(current, random)) return false;
    if (static_cast<double>(large.rebuild.makespan()) > most) return false;
    if (current.value(large.trial.replay(large.rebuild.sequence(), current.mode()), weight) > most) return false;
    current.load(large.rebuild.sequence(), current.mode());
    return true;
}

}  // namespace

void anneal(const Flat& flat, const StepChoices& choices, const Annealing& options, LargeSteps& large,
            IncrementalSchedule& current, Candidate& best) {
    Steps steps(flat, choices, current);
    double value = current.value(current.energy(), options.weight);
    for (std::uint64_t k = 0; k < options.evaluations && best.energy.makespan > options.enough; ++k) {
        Random random(options.seed, options.first_number + k);
        const double allowance = -options.temperature * std::log(1.0 - random.uniform());
        if (random.below(1000) < options.rebuild_permille) {
            if (!rebuild(large, current, random, options.weight, value + allowance)) continue;
        } else {
            const auto slack = static_cast<std::int64_t>(tuning.anneal.slack * allowance);
            if (!steps.propose(random, current.energy().makespan + slack)) continue;
            if (current.value(current.energy(), options.weight) > value + allowance) {
                current.take_back();
                continue;
            }
            current.keep();
        }
        value = current.value(current.energy(), options.weight);
        if (better(current.energy(), best.energy)) store(current, best);
    }
}

}  // namespace pipeweaver::search
