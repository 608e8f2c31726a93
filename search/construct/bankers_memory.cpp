#include "search/construct/bankers_memory.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/text.hpp"
#include "search/construct/canonical_orders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipeweaver::search {

std::string Shortage::text(const Flat& flat) const {
    const schedule::Task& first = flat.problem().tasks[task];
    return fmt::format("rank {}: {} ({} bytes) short to run the tasks connected with task {} '{}' even alone", rank,
                       human(Bytes{bytes}), bytes, task, first.label);
}

BankersMemory::BankersMemory(const Flat& flat) : flat_(flat) {
    for (const std::int64_t room : flat.room) limited_ = limited_ || room != unlimited;
}

void BankersMemory::find_components(bool one) {
    component_of_ = one ? std::vector<std::uint32_t>(flat_.tasks(), 0) : components_of(flat_);
    component_size_.clear();
    for (const std::uint32_t component : component_of_) {
        if (component >= component_size_.size()) component_size_.resize(component + 1, 0);
        ++component_size_[component];
    }
}

void BankersMemory::find_lanes() {
    auto tasks = flat_.reading;
    std::stable_sort(tasks.begin(), tasks.end(), [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(component_of_[a], flat_.rank_of[a]) < std::pair(component_of_[b], flat_.rank_of[b]);
    });
    lane_tasks_ = {};
    lane_tasks_.items = tasks;
    lane_rank_.clear();
    lane_of_.assign(flat_.tasks(), 0);
    lanes_ = {};
    for (std::uint32_t i = 0; i < tasks.size(); ++i) {
        const std::uint32_t component = component_of_[tasks[i]], rank = flat_.rank_of[tasks[i]];
        const bool same = i > 0 && component_of_[tasks[i - 1]] == component;
        if (!same && i > 0) lanes_.first.push_back(static_cast<std::uint32_t>(lanes_.items.size()));
        if (!same || flat_.rank_of[tasks[i - 1]] != rank) {
            if (i > 0) lane_tasks_.first.push_back(i);
            lanes_.items.push_back(static_cast<std::uint32_t>(lane_rank_.size()));
            lane_rank_.push_back(rank);
        }
        lane_of_[tasks[i]] = static_cast<std::uint32_t>(lane_rank_.size() - 1);
    }
    lane_tasks_.first.push_back(static_cast<std::uint32_t>(tasks.size()));
    lanes_.first.push_back(static_cast<std::uint32_t>(lanes_.items.size()));
}

BankersMemory::Level BankersMemory::level_of(std::uint32_t task) const {
    const Cost& cost = costs_[task];
    return {cost.acquire, std::min<std::int64_t>(0, cost.net()), cost.net()};
}

// Of lanes in canonical order, nothing placed.
void BankersMemory::build_trees() {
    tree_first_.clear();
    tree_size_.clear();
    leaf_of_.resize(flat_.tasks());
    tree_.clear();
    for (std::uint32_t lane = 0; lane < lane_rank_.size(); ++lane) {
        const auto tasks = lane_tasks_[lane];
        const auto first = static_cast<std::uint32_t>(tree_.size());
        const auto size = std::bit_ceil(static_cast<std::uint32_t>(tasks.size()));
        tree_first_.push_back(first);
        tree_size_.push_back(size);
        tree_.resize(first + 2 * size);
        for (std::uint32_t i = 0; i < tasks.size(); ++i) {
            leaf_of_[tasks[i]] = size + i;
            tree_[first + size + i] = level_of(tasks[i]);
        }
        for (std::uint32_t node = size - 1; node > 0; --node)
            tree_[first + node] = tree_[first + 2 * node].then(tree_[first + 2 * node + 1]);
    }
    fresh_tree_ = tree_;
}

// The lane's remaining tasks before and after this one in canonical order. Time O(log tasks of the lane).
std::pair<BankersMemory::Level, BankersMemory::Level> BankersMemory::around(std::uint32_t task) const {
    const Level* tree = tree_.data() + tree_first_[lane_of_[task]];
    Level before, after;
    for (std::uint32_t node = leaf_of_[task]; node > 1; node /= 2) {
        if (node % 2 == 1)
            before = tree[node - 1].then(before);
        else
            after = after.then(tree[node + 1]);
    }
    return {before, after};
}

BankersMemory::Level BankersMemory::remaining_without(std::uint32_t task) const {
    const auto [before, after] = around(task);
    return before.then(after);
}

void BankersMemory::take_from_tree(std::uint32_t task) {
    Level* tree = tree_.data() + tree_first_[lane_of_[task]];
    std::uint32_t node = leaf_of_[task];
    for (tree[node] = {}; node > 1;) {
        node /= 2;
        tree[node] = tree[2 * node].then(tree[2 * node + 1]);
    }
}

// How badly a component run in this order misses: bytes given back too early count like bytes too many; then the peaks.
std::int64_t BankersMemory::excess(std::uint32_t component, std::span<const std::uint32_t> place) const {
    std::int64_t missing = 0, peaks = 0;
    std::vector<std::uint32_t> tasks;
    for (const std::uint32_t lane : lanes_[component]) {
        tasks.assign(lane_tasks_[lane].begin(), lane_tasks_[lane].end());
        std::sort(tasks.begin(), tasks.end(), [&](std::uint32_t a, std::uint32_t b) { return place[a] < place[b]; });
        Level level;
        for (const std::uint32_t task : tasks) level = level.then(level_of(task));
        missing += std::max<std::int64_t>(0, level.need - flat_.room[lane_rank_[lane]]) - level.low;
        if (flat_.room[lane_rank_[lane]] != unlimited) peaks += level.need / 2;
    }
    // Peaks decide only between orders that fit. Both sums stay below the sum of all memory, which fits 63 bits.
    return missing > 0 ? missing : -(INT64_MAX - peaks);
}

// Puts each component's lanes in the order that suits it best. False if a component gives back too early in all orders.
bool BankersMemory::sort_lanes() {
    bool sound = true;
    for (std::uint32_t c = 0; c < component_size_.size(); ++c) {
        std::size_t best = 0;
        std::int64_t least = INT64_MAX;
        for (std::size_t k = 0; k < canonical_.size(); ++k) {
            const std::int64_t value = excess(c, canonical_[k]);
            if (value < least) best = k, least = value;
        }
        const auto& place = canonical_[best];
        for (const std::uint32_t lane : lanes_[c]) {
            std::sort(lane_tasks_.items.begin() + lane_tasks_.first[lane],
                      lane_tasks_.items.begin() + lane_tasks_.first[lane + 1],
                      [&](std::uint32_t a, std::uint32_t b) { return place[a] < place[b]; });
            Level level;
            for (const std::uint32_t task : lane_tasks_[lane]) level = level.then(level_of(task));
            sound = sound && level.low >= 0;
        }
    }
    return sound;
}

std::optional<Shortage> BankersMemory::first_shortage() {
    for (std::uint32_t lane = 0; lane < lane_rank_.size(); ++lane) {
        const std::int64_t room = flat_.room[lane_rank_[lane]];
        const std::int64_t missing = std::max(fresh_[lane].need - room, -fresh_[lane].low);
        if (missing > 0) return Shortage{lane_rank_[lane], missing, lane_tasks_[lane].front()};
    }
    return std::nullopt;
}

// Levels of the whole lanes. False if something gives back too early or stays taken.
bool BankersMemory::measure_lanes() {
    build_trees();
    fresh_.clear();
    leftovers_ = false;
    bool plain = true;
    for (std::uint32_t lane = 0; lane < lane_rank_.size(); ++lane) {
        fresh_.push_back(tree_[tree_first_[lane] + 1]);
        leftovers_ = leftovers_ || fresh_.back().after != 0;
        plain = plain && fresh_.back().low >= 0;
    }
    return plain && !leftovers_;
}

std::optional<Shortage> BankersMemory::change_costs(std::span<const Cost> costs) {
    if (costs_.empty()) return prepare(costs);
    costs_.assign(costs.begin(), costs.end());
    if (!measure_lanes() || first_shortage()) return prepare(costs);
    initial_open_.clear();
    restart();
    return std::nullopt;
}

std::optional<Shortage> BankersMemory::prepare(std::span<const Cost> costs) {
    costs_.assign(costs.begin(), costs.end());
    canonical_ = canonical_orders(flat_, costs);
    for (const bool one : {false, true}) {
        find_components(one);
        find_lanes();
        if (sort_lanes()) break;
    }
    measure_lanes();
    if (auto shortage = first_shortage()) return shortage;
    initial_open_.clear();
    restart();
    if (!leftovers_) return std::nullopt;
    open_.resize(component_size_.size());
    std::iota(open_.begin(), open_.end(), 0U);
    waiting_ = open_;
    sim_ = used_;
    if (!finish_greedily()) {
        for (const std::uint32_t lane : lanes_[waiting_.front()]) {
            const std::int64_t room = flat_.room[lane_rank_[lane]];
            const std::int64_t missing = sim_[lane_rank_[lane]] + level_[lane].need - room;
            if (room != unlimited && missing > 0) return Shortage{lane_rank_[lane], missing, lane_tasks_[lane].front()};
        }
    }
    initial_open_ = finished_;
    restart();
    return std::nullopt;
}

void BankersMemory::restart() {
    used_.assign(flat_.ranks(), 0);
    held_.assign(lane_rank_.size(), 0);
    level_ = fresh_;
    remaining_ = component_size_;
    tree_ = fresh_tree_;
    open_ = initial_open_;
    fussy_.assign(lane_rank_.size(), 0);
    relief_ = 0;
    bar_.assign(flat_.ranks(), {});
    bar_relief_.assign(flat_.ranks(), 0);
    accepted_ = UINT32_MAX;
    fitting_ = UINT32_MAX;
}

bool BankersMemory::begins(std::uint32_t task) const {
    return remaining_[component_of_[task]] == component_size_[component_of_[task]];
}

std::span<const std::uint32_t> BankersMemory::component_tasks(std::uint32_t task) const {
    const auto lanes = lanes_[component_of_[task]];
    return std::span(lane_tasks_.items)
        .subspan(lane_tasks_.first[lanes.front()],
                 lane_tasks_.first[lanes.back() + 1] - lane_tasks_.first[lanes.front()]);
}

Want BankersMemory::want(std::uint32_t task) const {
    const std::int64_t acquire = costs_[task].acquire, net = costs_[task].net();
    if (component_size_.size() == 1) return {acquire, net, leaf_of_[task]};
    if (begins(task)) return {acquire, net, net + remaining_without(task).need};
    return {acquire, INT64_MIN, INT64_MIN};  // never known to be refused
}

// After a test that failed: sim_ is where the components got stuck.
void BankersMemory::remember_refusal(std::uint32_t task) {
    const std::uint32_t rank = flat_.rank_of[task];
    const std::int64_t net = costs_[task].net();
    if (leftovers_ || flat_.room[rank] == unlimited) return;
    const std::int64_t free = flat_.room[rank] - (sim_[rank] - net);
    Bar found{net, free + 1};
    if (component_size_.size() == 1) {
        if (net + around(task).first.need <= free) return;
        found.key = leaf_of_[task];
    } else if (!begins(task)) {
        return;
    }
    const Bar known = bar(rank);
    if (std::pair(known.net, known.key) <= std::pair(found.net, found.key)) return;
    bar_[rank] = found;
    bar_relief_[rank] = relief_;
}

bool BankersMemory::fits(std::uint32_t component) const {
    for (const std::uint32_t lane : lanes_[component])
        if (sim_[lane_rank_[lane]] + level_[lane].need > flat_.room[lane_rank_[lane]]) return false;
    return true;
}

bool BankersMemory::only_frees(std::uint32_t component) const {
    for (const std::uint32_t lane : lanes_[component])
        if (level_[lane].after > 0) return false;
    return true;
}

void BankersMemory::finish(std::uint32_t component) {
    for (const std::uint32_t lane : lanes_[component]) sim_[lane_rank_[lane]] += level_[lane].after;
    finished_.push_back(component);
}

// Finishes the components of waiting_ from sim_ as long as one can be finished; those that give memory back first.
bool BankersMemory::finish_greedily() {
    finished_.clear();
    while (!waiting_.empty()) {
        const std::size_t before = finished_.size();
        std::erase_if(waiting_, [&](std::uint32_t component) {
            if ((leftovers_ && !only_frees(component)) || !fits(component)) return false;
            finish(component);
            return true;
        });
        if (finished_.size() > before) continue;
        const auto next = std::find_if(waiting_.begin(), waiting_.end(), [&](std::uint32_t c) { return fits(c); });
        if (next == waiting_.end()) return false;
        finish(*next);
        waiting_.erase(next);
    }
    return true;
}

bool BankersMemory::finish_in_order() {
    finished_.clear();
    for (const std::uint32_t component : open_) {
        if (!fits(component)) return false;
        finish(component);
    }
    return true;
}

bool BankersMemory::can_finish_all(std::uint32_t touched) {
    sim_ = used_;
    // Once this one is finished and has given back all it took, the others can go on as they could before.
    accepted_fits_ = !leftovers_ && fits(touched);
    if (accepted_fits_) return true;
    waiting_ = open_;
    if (!leftovers_ && std::find(open_.begin(), open_.end(), touched) == open_.end()) waiting_.push_back(touched);
    if (finish_greedily()) return true;
    if (!leftovers_) return false;
    sim_ = used_;
    return finish_in_order();
}

bool BankersMemory::accept(std::uint32_t lane, std::uint32_t task, const Level& level) {
    accepted_ = task;
    accepted_level_ = level;
    accepted_fits_ = false;
    finished_.clear();
    const std::int64_t net = costs_[task].net();
    if (!limited_) return true;
    // No rank holds more than before, and the component needs no more: whatever order worked still works.
    if (net <= 0 && net + level.need <= level_[lane].need) return true;
    // On other ranks nothing changes: where the component fits, it goes on to.
    const std::uint32_t component = component_of_[task], rank = lane_rank_[lane];
    if (!leftovers_ && fitting_ == component && used_[rank] + net + level.need <= flat_.room[rank])
        return accepted_fits_ = true;
    const Level old = level_[lane];
    level_[lane] = level;
    used_[rank] += net;
    const bool safe = can_finish_all(component);
    used_[rank] -= net;
    level_[lane] = old;
    if (safe) return true;
    accepted_ = UINT32_MAX;
    remember_refusal(task);
    return false;
}

bool BankersMemory::allows(std::uint32_t task) {
    const std::uint32_t lane = lane_of_[task], rank = lane_rank_[lane];
    if (used_[rank] + costs_[task].acquire > flat_.room[rank]) return false;
    const Level level = remaining_without(task);
    if (held_[lane] + costs_[task].net() + level.low < 0) {
        fussy_[lane] = 1;
        return false;
    }
    return accept(lane, task, level);
}

void BankersMemory::place(std::uint32_t task) {
    if (accepted_ != task) {
        const bool allowed = allows(task);
        PIPEWEAVER_ASSERT(allowed);
        static_cast<void>(allowed);
    }
    const std::uint32_t lane = lane_of_[task], component = component_of_[task];
    take_from_tree(task);
    used_[lane_rank_[lane]] += costs_[task].net();
    held_[lane] += costs_[task].net();
    level_[lane] = accepted_level_;
    if (!finished_.empty())
        open_ = finished_;
    else if (!leftovers_ && std::find(open_.begin(), open_.end(), component) == open_.end())
        open_.push_back(component);
    if (--remaining_[component] == 0) std::erase(open_, component);
    if (accepted_fits_)
        fitting_ = component;
    else if (costs_[task].net() > 0 || fitting_ == component)
        fitting_ = UINT32_MAX;
    if (costs_[task].release > 0 || leftovers_ || fussy_[lane] != 0) ++relief_;
    accepted_ = UINT32_MAX;
}

}  // namespace pipeweaver::search
