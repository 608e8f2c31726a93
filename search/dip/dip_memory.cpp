#include "search/dip/dip_memory.hpp"

#include "search/tuning.hpp"

#include <algorithm>

namespace pipeweaver::search {

namespace {

const schedule::Mode& mode_of(const Flat& flat, std::uint32_t pair, std::uint32_t mode) {
    return flat.problem().pairs[pair].modes[mode];
}

}  // namespace

DipMemory::DipMemory(const Flat& flat) : flat_(flat), place_of_(flat.tasks()) {}

std::int64_t DipMemory::time(const Item& item, std::uint32_t mode) const {
    const auto& chosen = mode_of(flat_, item.pair, mode);
    return (chosen.forward + chosen.backward + chosen.weight).count();
}

// What the pair holds at the start of the task at this place.
std::int64_t DipMemory::level(const Item& item, std::uint32_t mode, std::uint32_t place) const {
    const auto& chosen = mode_of(flat_, item.pair, mode);
    if (place == item.forward) return (chosen.held + chosen.forward_transient).count;
    if (place < item.backward) return chosen.held.count;
    if (place == item.backward) return (chosen.held + chosen.transient).count;
    return chosen.kept.count;
}

std::int64_t DipMemory::bytes_by_span(const Item& item, std::uint32_t mode) const {
    std::int64_t sum = 0;
    for (std::uint32_t k = item.forward; k <= item.last; ++k) sum += level(item, mode, k) / (item.last + 1);
    return sum;
}

void DipMemory::add(const Item& item, std::uint32_t mode, std::int64_t sign) {
    for (std::uint32_t k = item.forward; k <= item.last; ++k) load_[k] += sign * level(item, mode, k);
}

bool DipMemory::fits(const Item& item, std::uint32_t from, std::uint32_t to) const {
    for (std::uint32_t k = item.forward; k <= item.last; ++k)
        if (load_[k] - level(item, from, k) + level(item, to, k) > room_) return false;
    return true;
}

// Places, pairs and what tasks without a pair hold.
void DipMemory::set_up(std::span<const std::uint32_t> order) {
    items_.clear();
    fixed_.assign(order.size(), 0);
    std::int64_t held = 0;
    for (std::uint32_t k = 0; k < order.size(); ++k) {
        place_of_[order[k]] = k;
        fixed_[k] = held;
        if (flat_.pair_of[order[k]] != schedule::Replayer::unpaired) continue;
        fixed_[k] += flat_.cost(order[k], 0).acquire;
        held += flat_.cost(order[k], 0).net();
    }
    const auto& pairs = flat_.problem().pairs;
    for (const std::uint32_t task : order) {
        const std::uint32_t pair = flat_.pair_of[task];
        if (pair == schedule::Replayer::unpaired || index(pairs[pair].forward) != task) continue;
        const std::uint32_t backward = place_of_[index(pairs[pair].backward)];
        items_.push_back(
            {pair, place_of_[task], backward, pairs[pair].weight ? place_of_[index(*pairs[pair].weight)] : backward});
    }
}

bool DipMemory::try_mode(std::uint32_t item, std::uint32_t mode) {
    const Item& mine = items_[item];
    const std::uint32_t old = choice_[item];
    const std::int64_t saved = time(mine, old) - time(mine, mode);
    if (saved <= 0 || !fits(mine, old, mode)) return false;
    add(mine, old, -1);
    add(mine, mode, 1);
    choice_[item] = mode;
    sum_ -= saved;
    return true;
}

// From the frugal choice: first what is wanted, then anything faster, the most time per byte first.
void DipMemory::fill(std::span<const std::uint32_t> wanted) {
    choice_.clear();
    load_ = fixed_;
    sum_ = 0;
    for (const Item& item : items_) {
        choice_.push_back(base_[item.pair]);
        add(item, choice_.back(), 1);
        sum_ += time(item, choice_.back());
    }
    if (!wanted.empty())
        for (std::uint32_t i = 0; i < items_.size(); ++i) try_mode(i, wanted[i]);
    for (const Wish& wish : wishes_) try_mode(wish.item, wish.mode);
    if (sum_ >= best_sum_) return;
    best_sum_ = sum_;
    best_choice_ = choice_;
}

// The smallest sum of times and paid memory that any choice could have, less what the rank's memory is worth.
double DipMemory::bound_at_prices() {
    const auto places = static_cast<std::uint32_t>(fixed_.size());
    total_price_.assign(places + 1, 0);
    for (std::uint32_t k = 0; k < places; ++k) total_price_[k + 1] = total_price_[k] + price_[k];
    const auto between = [&](std::uint32_t first, std::uint32_t end) {
        return total_price_[end] - total_price_[first];
    };
    double bound = 0;
    for (std::uint32_t k = 0; k < places; ++k) bound -= price_[k] * static_cast<double>(room_ - fixed_[k]);
    priced_choice_.clear();
    for (const Item& item : items_) {
        const auto& modes = flat_.problem().pairs[item.pair].modes;
        double least = 0;
        std::uint32_t best = 0;
        for (std::uint32_t m = 0; m < modes.size(); ++m) {
            const auto bytes = [](Bytes count) { return static_cast<double>(count.count); };
            const double paid = price_[item.forward] * bytes(modes[m].held + modes[m].forward_transient) +
                                between(item.forward + 1, item.backward) * bytes(modes[m].held) +
                                price_[item.backward] * bytes(modes[m].held + modes[m].transient) +
                                between(item.backward + 1, item.last + 1) * bytes(modes[m].kept);
            const double all = static_cast<double>(time(item, m)) + paid;
            if (m == 0 || all < least) least = all, best = m;
        }
        bound += least;
        priced_choice_.push_back(best);
    }
    return bound;
}

// A step along the memory that the priced choice lacks or leaves (Polyak's length).
void DipMemory::raise_prices(double bound) {
    load_ = fixed_;
    for (std::uint32_t i = 0; i < items_.size(); ++i) add(items_[i], priced_choice_[i], 1);
    const double unit = static_cast<double>(std::max<std::int64_t>(1, room_));
    double square = 0;
    for (std::uint32_t k = 0; k < fixed_.size(); ++k) {
        const double lack = static_cast<double>(load_[k] - room_) / unit;
        if (lack > 0 || price_[k] > 0) square += lack * lack;
    }
    if (square <= 0) return;
    const double step = (static_cast<double>(best_sum_) - bound) / square;
    for (std::uint32_t k = 0; k < fixed_.size(); ++k) {
        const double lack = static_cast<double>(load_[k] - room_) / unit;
        price_[k] = std::max(0.0, price_[k] + step * lack / unit);
    }
}

void DipMemory::solve_rank() {
    wishes_.clear();
    for (std::uint32_t i = 0; i < items_.size(); ++i) {
        const Item& item = items_[i];
        const std::uint32_t base = base_[item.pair];
        for (std::uint32_t m = 0; m < flat_.problem().pairs[item.pair].modes.size(); ++m) {
            const std::int64_t saved = time(item, base) - time(item, m);
            if (saved <= 0) continue;
            const std::int64_t bytes = room_ == unlimited ? 0 : bytes_by_span(item, m) - bytes_by_span(item, base);
            wishes_.push_back(
                {static_cast<double>(saved) / static_cast<double>(std::max<std::int64_t>(1, bytes)), i, m});
        }
    }
    std::stable_sort(wishes_.begin(), wishes_.end(), [](const Wish& a, const Wish& b) { return a.worth > b.worth; });
    best_sum_ = INT64_MAX;
    fill({});
    if (room_ == unlimited) return;
    price_.assign(fixed_.size(), 0);
    double best_bound = 0;
    for (int k = 0; k < tuning.dip.price_rounds; ++k) {
        const double bound = bound_at_prices();
        best_bound = std::max(best_bound, bound);
        if (static_cast<double>(best_sum_) <= (1 + tuning.dip.enough) * best_bound) return;
        if (k > 0) fill(priced_choice_);
        raise_prices(bound);
    }
}

const std::vector<std::uint32_t>& DipMemory::choose(std::span<const std::uint32_t> sequence,
                                                    std::span<const std::uint32_t> base) {
    base_ = base;
    mode_.assign(base.begin(), base.end());
    std::vector<std::vector<std::uint32_t>> orders(flat_.ranks());
    for (const std::uint32_t task : sequence) orders[flat_.rank_of[task]].push_back(task);
    for (std::uint32_t rank = 0; rank < flat_.ranks(); ++rank) {
        room_ = flat_.room[rank];
        set_up(orders[rank]);
        if (items_.empty()) continue;
        solve_rank();
        for (std::uint32_t i = 0; i < items_.size(); ++i) mode_[items_[i].pair] = best_choice_[i];
    }
    return mode_;
}

}  // namespace pipeweaver::search
