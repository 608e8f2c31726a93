#include "search/improve/engine.hpp"

#include "pipeweaver/search/options.hpp"
#include "search/improve/spend_memory.hpp"
#include "search/improve/with_less_memory.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::search {

namespace {

// Numbers of lines (alternatives.hpp), above those of slots.
constexpr std::size_t staggered = 1'000, elsewhere = 2'000;

}  // namespace

// The order was found under modes that all orders of the group search fit under; its own may need less.
void Engine::Slot::take_spent(const Flat& flat, const Candidate& found) {
    if (!found.valid() || found.energy == plain) return;
    plain = found.energy;
    spent = found;
    if (worth_spending(flat)) spend_memory(flat, current, spent);
    if (better(spent, best)) best = spent;
}

Engine::Engine(const Flat& flat, std::uint64_t seed, std::int64_t bound, const EngineTuning& tuned,
               const AlternativesWanted& wanted)
    : flat_(flat),
      tuning_(tuned),
      seed_(seed),
      bound_(bound),
      choices_(flat),
      groups_(flat),
      alternatives_(flat, wanted),
      group_share_(tuned.group_share) {
    slots_.reserve(tuned.slots);
    for (std::size_t s = 0; s < tuned.slots; ++s) slots_.emplace_back(flat, groups_);
}

std::optional<std::string> Engine::start(std::vector<schedule::Schedule> given, bool have_policies,
                                         const Executor& execute) {
    begun_ = {};
    starts_.emplace(flat_, std::move(given), have_policies);
    const bool large = flat_.tasks() > most_tasks_at_leisure;
    do {
        try_starts(large ? tuning_.starts_work : tuning_.first_starts_work, execute);
    } while (!best_.valid() && !starts_->done());
    if (!best_.valid()) return begun_.least ? begun_.least->text(flat_) : "no schedule keeps the rules";
    if (starts_->done()) begin_improving(execute);
    return std::nullopt;
}

// The next of them, one at least.
void Engine::try_starts(std::uint64_t work, const Executor& execute) {
    for (InitialSchedule& start : starts_->next(work / flat_.tasks(), execute)) {
        ++evaluations_;
        auto& least = begun_.least;
        if (start.shortage && (!least || start.shortage->bytes < least->bytes)) least = start.shortage;
        alternatives_.offer(begun_.count++, start.candidate, start.name);
        if (start.candidate.valid() && (!begun_.any || better(start.before, begun_.plain))) {
            begun_.any = true;
            begun_.plain = start.before;
            begun_.mode = std::move(start.mode);
        }
        if (!better(start.candidate, best_)) continue;
        best_ = std::move(start.candidate);
        found_by_ = start.name;
    }
}

// No starts: orders are looked for under the modes of these, and random numbers go by how many there were.
void Engine::try_with_less_memory(const Executor& execute) {
    if (optimal() || flat_.tasks() > tuning_.less_memory_tasks) return;
    for (const UnderLess& one : with_less_memory(flat_, execute)) adopt(one.candidate, one.policy);
}

void Engine::begin_improving(const Executor& execute) {
    try_with_less_memory(execute);
    // Orders are looked for under modes that all of them fit under; but where spare memory makes a great difference,
    // under those that it was spent on.
    const auto worth = static_cast<double>(begun_.plain.makespan) * (1 - tuning_.spent_modes_from);
    group_mode_ = static_cast<double>(best_.energy.makespan) < worth ? best_.mode : begun_.mode;
    for (Slot& slot : slots_) slot.best = best_;
    starts_.reset();
}

void Engine::adopt(const Candidate& candidate, std::string_view who) {
    if (!better(candidate, best_)) return;
    alternatives_.offer(line(elsewhere), candidate, who);
    best_ = candidate;
    found_by_ = who;
    improved_ = rounds_;
}

// Where schedules come from, beyond all starts: a slot in a cycle (0: the group search).
std::uint64_t Engine::line(std::size_t slot) const { return (cycle_ + 1) << 32U | slot; }

// The best of the slots, the first among equals.
void Engine::merge(std::string_view who) {
    for (const Slot& slot : slots_) {
        if (!better(slot.best, best_)) continue;
        best_ = slot.best;
        found_by_ = who;
        improved_ = rounds_;
    }
}

// Building a whole schedule takes long where tasks are many; a single step does not.
std::uint64_t Engine::group_rounds(std::uint64_t of_few_tasks, std::uint64_t few) const {
    return std::max<std::uint64_t>(1, std::min(of_few_tasks, of_few_tasks * few / flat_.tasks()));
}

bool Engine::in_group_search() const {
    if (cycle_ > 0) return group_rounds_left_ > 0;
    const std::uint64_t patience = groups_.several_models ? tuning_.group_patience_of_several : tuning_.group_patience;
    return rounds_ < std::min(group_rounds(tuning_.most_group_rounds, tuning_.group_tasks),
                              improved_ + group_rounds(patience, tuning_.group_patience_tasks));
}

void Engine::round(const Executor& execute) {
    if (starts_) {
        try_starts(tuning_.starts_work, execute);
        if (starts_->done()) begin_improving(execute);
        ++start_rounds_;
        return;
    }
    if (in_group_search())
        group_round(execute);
    else
        anneal_round(execute);
    ++rounds_;
}

void Engine::group_round(const Executor& execute) {
    const std::uint64_t each = std::max<std::uint64_t>(1, tuning_.group_work / flat_.tasks());
    if (!group_phase_) {
        group_phase_ = std::make_unique<GroupPhase>(flat_, slots_.size(), group_mode_);
        evaluations_ += group_phase_->begin(tuning_.group_beginnings_work, execute);
        stagger_ = std::make_unique<Phase<StaggerSearch>>(
            flat_, tuning_.stagger_slots * (groups_.several_models ? 2 : 1), group_mode_);
    }
    group_phase_->round(seed_, evaluations_, each, execute);
    evaluations_ += group_phase_->size() * each;
    execute(slots_.size(), [&](std::size_t s) { slots_[s].take_spent(flat_, group_phase_->best(s)); });
    for (std::size_t s = 0; s < slots_.size(); ++s) alternatives_.offer(line(s), slots_[s].spent, "groups");
    const std::uint64_t sync = std::max(tuning_.group_sync_rounds, tuning_.group_sync_steps / each);
    if ((rounds_ + 1) % sync == 0) group_phase_->follow_the_better();
    const std::int64_t before = best_.energy.makespan;
    merge("groups");
    groups_gained_ = groups_gained_ || best_.energy.makespan < before;
    if (stagger_) stagger_round(execute);
    if (group_rounds_left_ > 0) --group_rounds_left_;
}

void Engine::stagger_round(const Executor& execute) {
    const std::uint64_t each = std::max<std::uint64_t>(1, tuning_.group_work / flat_.tasks());
    stagger_->round(seed_, evaluations_, each, execute, best_.energy.makespan);
    evaluations_ += stagger_->size() * each;
    for (std::size_t s = 0; s < stagger_->size(); ++s) {
        alternatives_.offer(line(staggered + s), stagger_->best(s), "staggered");
        adopt(stagger_->best(s), "staggered");
    }
}

// Their share doubles where the last turn gained, and halves where it did not.
void Engine::begin_turn_of_groups() {
    if (cycle_ > 1)
        group_share_ = std::clamp(groups_gained_ ? 2 * group_share_ : group_share_ / 2, tuning_.least_group_share,
                                  tuning_.most_group_share);
    groups_gained_ = false;
    group_phase_->go_on_from(best_);
    group_rounds_left_ = group_rounds(static_cast<std::uint64_t>(static_cast<double>(cycle_length_) * group_share_),
                                      tuning_.group_tasks);
}

void Engine::begin_cycle() {
    const std::uint64_t first = groups_.several_models ? tuning_.first_cycle_of_several : tuning_.first_cycle;
    cycle_length_ = cycle_ == 0 ? first : cycle_length_ + cycle_length_ / 2;
    cycle_round_ = 0;
    if (!groups_.several_models) stagger_.reset();
    for (std::size_t s = 0; s < slots_.size(); ++s) {
        Slot& slot = slots_[s];
        if (s % 2 == 0) slot.best = best_;
        const Candidate& other = stagger_ ? stagger_->best(s / 2 % stagger_->size()) : slot.best;
        const Candidate& from = s % 2 == 1 && other.valid() ? other : slot.best;
        slot.current.load(from.sequence, from.mode);
    }
    if (stagger_) stagger_->forget();
    ++cycle_;
}

void Engine::follow_the_better() {
    // Beginnings of two sorts are not compared: the newer sort would soon be replaced by copies of the older.
    const std::size_t sorts = stagger_ ? 2 : 1;
    for (std::size_t sort = 0; sort < sorts; ++sort) {
        std::vector<std::pair<double, std::size_t>> standing;
        for (std::size_t s = sort; s < slots_.size(); s += sorts)
            standing.emplace_back(slots_[s].current.value(slots_[s].current.energy(), tuning_.weight), s);
        std::sort(standing.begin(), standing.end());
        for (std::size_t k = 0; k < standing.size() / 2; ++k)
            slots_[standing[standing.size() - 1 - k].second].current.copy(slots_[standing[k].second].current);
    }
}

void Engine::anneal_round(const Executor& execute) {
    if (cycle_round_ == cycle_length_) begin_cycle();
    const std::uint64_t each =
        std::max(tuning_.least_anneal_steps, tuning_.anneal_work / (flat_.tasks() + tuning_.cost_of_step));
    const double unit = static_cast<double>(best_.energy.makespan) / std::sqrt(static_cast<double>(flat_.tasks()));
    const double along = static_cast<double>(cycle_round_) / static_cast<double>(cycle_length_);
    const double hot = tuning_.hot * (cycle_ % 2 == 0 ? tuning_.hotter : 1);
    const double temperature = unit * hot * std::pow(tuning_.cold / hot, along);
    execute(slots_.size(), [&](std::size_t s) {
        const Annealing options{temperature, tuning_.weight,
                                seed_,       evaluations_ + s * each,
                                each,        s % 2 == 0 ? 0 : 2 * tuning_.rebuild_permille,
                                bound_};
        anneal(flat_, choices_, options, slots_[s].large, slots_[s].current, slots_[s].best);
    });
    evaluations_ += slots_.size() * each;
    ++cycle_round_;
    for (std::size_t s = 0; s < slots_.size(); ++s) alternatives_.offer(line(s), slots_[s].best, "annealing");
    if (cycle_round_ == cycle_length_) begin_turn_of_groups();
    if (cycle_round_ % tuning_.sync_rounds == 0) follow_the_better();
    merge("annealing");
    if (stagger_) stagger_round(execute);
}

}  // namespace pipeweaver::search
