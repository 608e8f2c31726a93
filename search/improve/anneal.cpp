#include "search/improve/anneal.hpp"

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

constexpr std::uint32_t none = UINT32_MAX;

class Steps {
public:
    Steps(const Flat& flat, const StepChoices& choices, Walk& walk) : flat_(flat), choices_(choices), walk_(walk) {}

    bool propose(Random& random, std::int64_t limit) {
        const std::uint64_t kind = random.below(100);
        if (!choices_.pairs.empty() && kind < 40) return change_mode(random, limit);
        return kind < 75 ? move_critical(random, limit) : move_any(random, limit);
    }

private:
    // 1, 2, 3, ... with falling probability, now and then far.
    static std::int64_t distance(Random& random) {
        if (random.below(2) == 0) return 1;
        const std::uint64_t reach = random.below(8) == 0 ? 40 : 8;
        return static_cast<std::int64_t>(1 + random.below(reach));
    }

    bool move(std::uint32_t task, bool earlier, std::int64_t by, std::int64_t limit) {
        const std::uint32_t other = walk_.neighbour(task, earlier ? -by : by);
        if (other == none) return false;
        return earlier ? walk_.propose_before(task, other, limit) : walk_.propose_after(task, other, limit);
    }

    // Lets a critical task overtake the one that holds it up, or sends that one back behind it.
    bool move_critical(Random& random, std::int64_t limit) {
        const auto& critical = walk_.critical();
        if (critical.empty()) return move_any(random, limit);
        const std::uint32_t task = critical[random.below(critical.size())];
        const std::int64_t by = distance(random);
        if (random.below(2) == 0) return move(task, true, by, limit);
        return move(walk_.neighbour(task, -1), false, by, limit);
    }

    bool move_any(Random& random, std::int64_t limit) {
        const auto task = static_cast<std::uint32_t>(random.below(flat_.tasks()));
        return move(task, random.below(2) == 0, distance(random), limit);
    }

    std::uint32_t any_pair(Random& random) {
        const auto& critical = walk_.critical();
        if (!critical.empty() && random.below(2) == 0) {
            const std::uint32_t pair = flat_.pair_of[critical[random.below(critical.size())]];
            if (pair != schedule::Replayer::unpaired && flat_.problem().pairs[pair].modes.size() > 1) return pair;
        }
        return choices_.pairs[random.below(choices_.pairs.size())];
    }

    std::uint32_t other_mode(std::uint32_t pair, Random& random) const {
        const std::size_t modes = flat_.problem().pairs[pair].modes.size();
        const std::uint64_t step = 1 + random.below(modes - 1);
        return static_cast<std::uint32_t>((walk_.mode()[pair] + step) % modes);
    }

    // A pair into another mode; where memory is short, another pair that is in its way pays for it.
    bool change_mode(Random& random, std::int64_t limit) {
        const std::uint32_t pair = any_pair(random);
        const Walk::ModeChange first{pair, other_mode(pair, random)};
        if (random.below(2) == 0 && walk_.propose_modes({&first, 1}, limit)) return true;
        const auto& neighbours = choices_.on_rank[flat_.rank_of[index(flat_.problem().pairs[pair].forward)]];
        for (int attempt = 0; attempt < 4; ++attempt) {
            const std::uint32_t other = neighbours[random.below(neighbours.size())];
            if (other == pair || !walk_.overlap(pair, other)) continue;
            const std::array both{first, Walk::ModeChange{other, other_mode(other, random)}};
            return walk_.propose_modes(both, limit);
        }
        return false;
    }

    const Flat& flat_;
    const StepChoices& choices_;
    Walk& walk_;
};

// A large step, kept if its value is at most `most`.
bool rebuild(LargeSteps& large, Walk& walk, Random& random, double weight, double most) {
    if (!large.rebuild.propose(walk, random)) return false;
    if (static_cast<double>(large.rebuild.makespan()) > most) return false;
    if (walk.value(large.trial.replay(large.rebuild.sequence(), walk.mode()), weight) > most) return false;
    walk.load(large.rebuild.sequence(), walk.mode());
    return true;
}

}  // namespace

void anneal(const Flat& flat, const StepChoices& choices, const Annealing& options, LargeSteps& large, Walk& walk,
            Candidate& best) {
    Steps steps(flat, choices, walk);
    double value = walk.value(walk.energy(), options.weight);
    for (std::uint64_t k = 0; k < options.evaluations && best.energy.makespan > options.enough; ++k) {
        Random random(options.seed, options.first_number + k);
        const double allowance = -options.temperature * std::log(1.0 - random.uniform());
        if (random.below(1000) < options.rebuild_permille) {
            if (!rebuild(large, walk, random, options.weight, value + allowance)) continue;
        } else {
            const auto slack = static_cast<std::int64_t>(2 * allowance);
            if (!steps.propose(random, walk.energy().makespan + slack)) continue;
            if (walk.value(walk.energy(), options.weight) > value + allowance) {
                walk.take_back();
                continue;
            }
            walk.keep();
        }
        value = walk.value(walk.energy(), options.weight);
        if (better(walk.energy(), best.energy)) store(walk, best);
    }
}

}  // namespace pipeweaver::search
