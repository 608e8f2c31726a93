#include "search/construct/find_feasible.hpp"

#include "search/construct/canonical_orders.hpp"
#include "search/instance/modes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipeweaver::search {

namespace {

constexpr std::uint32_t nowhere = UINT32_MAX;

// Numbers 0 ... of those of `count` items that have a group, by it.
template <class GroupOf>
Groups<std::uint32_t> grouped(std::uint32_t groups, std::uint32_t count, GroupOf group_of) {
    Groups<std::uint32_t> all;
    all.first.assign(groups + 1, 0);
    for (std::uint32_t i = 0; i < count; ++i)
        if (group_of(i) != nowhere) ++all.first[group_of(i) + 1];
    std::partial_sum(all.first.begin(), all.first.end(), all.first.begin());
    all.items.resize(all.first.back());
    auto next = all.first;
    for (std::uint32_t i = 0; i < count; ++i)
        if (group_of(i) != nowhere) all.items[next[group_of(i)]++] = i;
    return all;
}

}  // namespace

FeasibleAnnealing::FeasibleAnnealing(const Flat& flat, std::span<const std::uint32_t> sequence,
                                     std::span<const std::uint32_t> mode)
    : flat_(flat),
      sequence_(sequence.begin(), sequence.end()),
      place_(flat.tasks()),
      mode_(mode.begin(), mode.end()),
      costs_(flat.costs(mode)),
      level_(flat.tasks()),
      where_(flat.tasks(), nowhere),
      used_(flat.ranks()),
      known_(flat.ranks(), 0),
      marked_(flat.tasks(), 0) {
    // Components that give back all they take can only be in each other's way: each has to fit alone.
    auto component = components_of(flat);
    if (!returns_all_memory(flat)) std::fill(component.begin(), component.end(), 0U);
    std::stable_sort(sequence_.begin(), sequence_.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return component[a] < component[b]; });
    const std::uint32_t components = 1 + *std::max_element(component.begin(), component.end());
    lane_of_.resize(flat.tasks());
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) lane_of_[i] = component[i] * flat.ranks() + flat.rank_of[i];
    const std::uint32_t lanes = components * flat.ranks();
    lanes_ = grouped(lanes, flat.tasks(), [&](std::uint32_t i) { return lane_of_[i]; });
    const auto& pairs = flat.problem().pairs;
    lane_pairs_ = grouped(lanes, static_cast<std::uint32_t>(pairs.size()), [&](std::uint32_t k) {
        return pairs[k].modes.size() < 2 ? nowhere : lane_of_[index(pairs[k].forward)];
    });
    for (const Cost& cost : costs_) unit_ += std::abs(static_cast<double>(cost.net()));
    unit_ = 1 + unit_ / flat.tasks();
    measure();
    begin_cycle();
}

FeasibleAnnealing::Level FeasibleAnnealing::level(std::uint32_t task, std::int64_t before) const {
    const Cost& cost = costs_[task];
    return {before, std::max<std::int64_t>(
                        {0, before + cost.acquire - flat_.room[flat_.rank_of[task]], -(before + cost.net())})};
}

void FeasibleAnnealing::set_short(std::uint32_t task, bool is_short) {
    if (is_short == (where_[task] != nowhere)) return;
    if (is_short) {
        where_[task] = static_cast<std::uint32_t>(short_.size());
        short_.push_back(task);
        return;
    }
    where_[short_.back()] = where_[task];
    short_[where_[task]] = short_.back();
    short_.pop_back();
    where_[task] = nowhere;
}

// All levels of the sequence.
void FeasibleAnnealing::measure() {
    std::fill(used_.begin(), used_.end(), 0);
    for (std::uint32_t k = 0; k < flat_.tasks(); ++k) {
        const std::uint32_t task = sequence_[k];
        place_[task] = k;
        level_[task] = level(task, used_[flat_.rank_of[task]]);
        set_short(task, level_[task].missing > 0);
        used_[flat_.rank_of[task]] += costs_[task].net();
    }
}

// Adds the task at a place to moved_ if it is `task` or tied to what is there already, else to stretch_.
void FeasibleAnnealing::gather_one(std::uint32_t place, std::uint32_t task, const Groups<Arc>& ties) {
    const std::uint32_t here = sequence_[place];
    bool tied = here == task;
    for (const Arc& arc : ties[here]) tied = tied || marked_[arc.task] == steps_;
    if (tied) marked_[here] = steps_;
    (tied ? moved_ : stretch_).push_back(here);
}

// stretch_: from the task to place `to` after it, the task and what waits for it last.
void FeasibleAnnealing::gather(std::uint32_t task, std::uint32_t to) {
    stretch_.clear();
    moved_.clear();
    for (std::uint32_t k = place_[task]; k <= to; ++k) gather_one(k, task, flat_.before);
    stretch_.insert(stretch_.end(), moved_.begin(), moved_.end());
}

// stretch_: from place `to` to the task after it, the task and what it waits for first.
void FeasibleAnnealing::gather_back(std::uint32_t task, std::uint32_t to) {
    stretch_.clear();
    moved_.clear();
    for (std::uint32_t k = place_[task] + 1; k-- > to;) gather_one(k, task, flat_.after);
    stretch_.insert(stretch_.end(), moved_.begin(), moved_.end());
    std::reverse(stretch_.begin(), stretch_.end());
}

// Puts stretch_ at place `first`, under costs_, if annealing takes it.
bool FeasibleAnnealing::judge(std::uint32_t first, Random& random) {
    work_ += 4 + stretch_.size();
    double change = 0;
    new_level_.clear();
    // What a rank holds where the stretch begins: known of its first task there in the order so far.
    for (std::size_t k = 0; k < stretch_.size(); ++k) {
        const std::uint32_t task = sequence_[first + k], rank = flat_.rank_of[task];
        if (known_[rank] != steps_) used_[rank] = level_[task].before;
        known_[rank] = steps_;
    }
    for (const std::uint32_t task : stretch_) {
        std::int64_t& used = used_[flat_.rank_of[task]];
        new_level_.push_back(level(task, used));
        used += costs_[task].net();
        change += static_cast<double>(new_level_.back().missing) - static_cast<double>(level_[task].missing);
    }
    if (change > 0 && random.uniform() >= std::exp(-change / temperature_)) return false;
    for (std::uint32_t k = 0; k < stretch_.size(); ++k) {
        const std::uint32_t task = stretch_[k];
        sequence_[first + k] = task;
        place_[task] = first + k;
        level_[task] = new_level_[k];
        set_short(task, level_[task].missing > 0);
    }
    return true;
}

void FeasibleAnnealing::move(std::uint32_t task, std::uint32_t to, Random& random) {
    const std::uint32_t from = place_[task];
    if (from == to) return;
    if (from < to)
        gather(task, to);
    else
        gather_back(task, to);
    judge(std::min(from, to), random);
}

void FeasibleAnnealing::change_mode(std::uint32_t pair, std::uint32_t mode, Random& random) {
    const auto& its = flat_.problem().pairs[pair];
    const auto forward = static_cast<std::uint32_t>(its.forward), backward = static_cast<std::uint32_t>(its.backward);
    const std::uint32_t last = its.weight ? static_cast<std::uint32_t>(*its.weight) : backward;
    const std::uint32_t tasks[] = {forward, backward, last};
    const std::uint32_t before = mode_[pair];
    const auto set = [&](std::uint32_t to) {
        mode_[pair] = to;
        for (const std::uint32_t task : tasks) costs_[task] = flat_.cost(task, to);
    };
    stretch_.assign(sequence_.begin() + place_[forward], sequence_.begin() + place_[last] + 1);
    set(mode);
    if (!judge(place_[forward], random)) set(before);
}

void FeasibleAnnealing::step(Random& random) {
    ++steps_;
    const std::uint32_t task = short_[random.below(short_.size())];
    const auto pairs = lane_pairs_[lane_of_[task]];
    if (!pairs.empty() && random.below(tuning.feasible.mode_one_in) == 0) {
        const std::uint32_t pair = pairs[random.below(pairs.size())];
        const std::size_t modes = flat_.problem().pairs[pair].modes.size();
        const auto by = static_cast<std::uint32_t>(1 + random.below(modes - 1));
        return change_mode(pair, (mode_[pair] + by) % static_cast<std::uint32_t>(modes), random);
    }
    const auto lane = lanes_[lane_of_[task]];
    const std::uint32_t other = lane[random.below(lane.size())];
    if (other == task) return;
    if (random.below(tuning.feasible.move_one_in) == 0) return move(task, place_[other], random);
    // What would help is to have it on the other side of the task; what would not is tried now and then.
    const bool helps = (place_[other] < place_[task]) == (costs_[other].net() > 0);
    if (helps || random.below(tuning.feasible.useless_one_in) == 0) move(other, place_[task], random);
}

void FeasibleAnnealing::begin_cycle() {
    cycle_length_ = tuning.feasible.first_cycle * flat_.tasks() << std::min(cycle_, tuning.feasible.most_doublings);
    cycle_end_ = work_ + cycle_length_;
    ++cycle_;
}

void FeasibleAnnealing::run(Random& random, std::uint64_t work) {
    const std::uint64_t end = work_ + work;
    while (!fits() && work_ < end) {
        if (work_ >= cycle_end_) begin_cycle();
        const double left = static_cast<double>(cycle_end_ - work_) / static_cast<double>(cycle_length_);
        temperature_ = unit_ * tuning.feasible.cold * std::pow(tuning.feasible.hot / tuning.feasible.cold, left);
        for (int k = 0; k < tuning.feasible.steps_per_temperature && !fits(); ++k) {
            ++work_;
            step(random);
        }
    }
}

FeasibleSearch::FeasibleSearch(const Flat& flat, std::uint64_t seed) : flat_(flat), seed_(seed) {
    auto modes = frugal_modes(flat);
    for (auto& mode : uniform_modes(flat)) modes.push_back(std::move(mode));
    for (std::size_t s = 0; s < tuning.feasible.slots; ++s) {
        const auto& mode = modes[s % modes.size()];
        const auto orders = canonical_orders(flat, flat.costs(mode));
        const auto& place = orders[s % orders.size()];
        std::vector<std::uint32_t> sequence(flat.tasks());
        for (std::uint32_t i = 0; i < flat.tasks(); ++i) sequence[place[i]] = i;
        slots_.emplace_back(flat, sequence, mode);
    }
}

std::optional<schedule::Schedule> FeasibleSearch::round(const Executor& execute) {
    execute(slots_.size(), [&](std::size_t s) {
        Random random(seed_, rounds_ * slots_.size() + s);
        slots_[s].run(random, tuning.feasible.round_work);
    });
    ++rounds_;
    steps_ = 0;
    for (const FeasibleAnnealing& slot : slots_) steps_ += slot.steps();
    for (const FeasibleAnnealing& slot : slots_)
        if (slot.fits()) return as_schedule(flat_, slot.sequence(), slot.mode());
    return std::nullopt;
}

}  // namespace pipeweaver::search
