#include "search/dip/dip.hpp"

#include "pipeweaver/base/random.hpp"
#include "search/improve/initial_schedules.hpp"
#include "search/instance/modes.hpp"
#include "search/tuning.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace pipeweaver::search {

namespace {

// `beginning`, then all other items in random order.
void complete(const std::vector<std::uint32_t>& beginning, std::size_t items, Random& random,
              std::vector<std::uint32_t>& order) {
    order = beginning;
    std::vector<char> taken(items, 0);
    for (const std::uint32_t item : order) taken[item] = 1;
    for (std::uint32_t item = 0; item < items; ++item)
        if (taken[item] == 0) order.push_back(item);
    for (std::size_t k = order.size(); k > beginning.size() + 1; --k)
        std::swap(order[k - 1], order[beginning.size() + random.below(k - beginning.size())]);
}

}  // namespace

Groups<std::uint32_t> dip_items(const Flat& flat) {
    const auto& tasks = flat.problem().tasks;
    std::map<std::tuple<std::int64_t, std::string_view, std::uint8_t>, std::size_t> number;
    std::vector<std::vector<std::uint32_t>> members;
    for (const std::uint32_t i : flat.reading) {
        const auto [item, fresh] =
            number.try_emplace({tasks[i].microbatch.value_or(-1), tasks[i].module, flat.late[i]}, members.size());
        if (fresh) members.emplace_back();
        members[item->second].push_back(i);
    }
    Groups<std::uint32_t> items;
    for (const auto& list : members) {
        items.items.insert(items.items.end(), list.begin(), list.end());
        items.first.push_back(static_cast<std::uint32_t>(items.items.size()));
    }
    return items;
}

Dip::Dip(const Flat& flat, const Options& options)
    : flat_(flat),
      options_(options),
      bound_(best_bound(*flat.replayer)),
      items_(dip_items(flat)),
      tree_(static_cast<std::uint32_t>(items_.size())),
      has_modes_(has_modes(flat)) {
    for (std::size_t s = 0; s < tuning.dip.slots; ++s) slots_.push_back(std::make_unique<Slot>(flat));
}

// The first of the frugal modes, then of the uniform ones, that fits; else the least shortage.
std::optional<Shortage> Dip::choose_frugal(Dispatcher& dispatcher) {
    auto choices = uniform_modes(flat_);
    if (has_modes_) {
        auto frugal = frugal_modes(flat_);
        choices.insert(choices.begin(), frugal.begin(), frugal.end());
    }
    std::optional<Shortage> least;
    for (const auto& mode : choices) {
        frugal_ = mode;
        const auto shortage = dispatcher.prepare(flat_.costs(mode));
        if (!shortage) return std::nullopt;
        if (!least || shortage->bytes < least->bytes) least = shortage;
    }
    return least;
}

void Dip::start(const Executor& execute) {
    for (const auto& schedule : options_.starts) {
        const Candidate candidate = given_schedule(flat_, schedule);
        if (better(candidate, best_)) best_ = candidate, found_by_ = "start";
    }
    if (const auto shortage = choose_frugal(slots_.front()->dispatcher)) {
        if (best_.valid())
            fits_ = false;
        else
            why_not_ = shortage->text(flat_);
        return;
    }
    execute(slots_.size() - 1,
            [&](std::size_t s) { static_cast<void>(slots_[s + 1]->dispatcher.prepare(flat_.costs(frugal_))); });
    Slot& first = *slots_.front();
    first.order.resize(items_.size());
    std::iota(first.order.begin(), first.order.end(), 0U);
    evaluate(first);
    ++evaluations_;
    merge();
}

// Schedules the slot's order of items; keeps it if it is the slot's best.
std::int64_t Dip::evaluate(Slot& slot) const {
    std::uint32_t next = 0;
    for (const std::uint32_t item : slot.order)
        for (const std::uint32_t task : items_[item]) slot.position[task] = next++;
    slot.dispatcher.run(Choice::dual_queue, slot.position);
    const auto& sequence = slot.dispatcher.sequence();
    if (!has_modes_ && slot.best.valid() && slot.dispatcher.makespan() >= slot.best.energy.makespan)
        return slot.dispatcher.makespan();
    slot.current.load(sequence, has_modes_ ? slot.memory.choose(sequence, frugal_) : frugal_);
    if (!slot.best.valid() || better(slot.current.energy(), slot.best.energy)) store(slot.current, slot.best);
    return slot.current.energy().makespan;
}

void Dip::begin_wave() {
    wave_left_ = tuning.dip.completions;
    for (const auto& one : slots_) {
        Slot& slot = *one;
        slot.node = tree_.select();
        if (slot.node) slot.beginning = tree_.beginning(*slot.node);
        slot.best_of_wave = INT64_MAX;
    }
}

void Dip::end_wave() {
    for (const auto& slot : slots_)
        if (slot->node) tree_.record(*slot->node, slot->best_of_wave);
}

void Dip::merge() {
    for (const auto& slot : slots_)
        if (better(slot->best, best_)) best_ = slot->best, found_by_ = options_.strategy;
}

void Dip::round(const Executor& execute) {
    ++rounds_;
    if (exhausted()) return;
    if (wave_left_ == 0) begin_wave();
    const std::uint64_t each =
        std::clamp<std::uint64_t>(tuning.dip.round_work / std::max(1U, flat_.tasks()), 1, wave_left_);
    execute(slots_.size(), [&](std::size_t s) {
        Slot& slot = *slots_[s];
        for (std::uint64_t k = 0; k < each && slot.node; ++k) {
            Random random(options_.seed, evaluations_ + s * each + k);
            complete(slot.beginning, items_.size(), random, slot.order);
            slot.best_of_wave = std::min(slot.best_of_wave, evaluate(slot));
        }
    });
    evaluations_ += slots_.size() * each;
    wave_left_ -= each;
    if (wave_left_ == 0) end_wave();
    merge();
}

}  // namespace pipeweaver::search
