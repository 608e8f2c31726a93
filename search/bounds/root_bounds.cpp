#include "search/bounds/root_bounds.hpp"

#include "search/bounds/edge_finding.hpp"
#include "search/bounds/price_bound.hpp"
#include "search/tuning.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::search {

namespace {

std::int64_t critical_path(const Flat& flat) {
    std::int64_t longest = 0;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i)
        longest = std::max(longest, flat.head[i] + flat.shortest[i] + flat.tail[i]);
    return longest;
}

std::vector<std::vector<Job>> jobs_by_rank(const Flat& flat, const std::vector<std::int64_t>& head,
                                           const std::vector<std::int64_t>& tail) {
    std::vector<std::vector<Job>> jobs(flat.ranks());
    for (std::uint32_t i = 0; i < flat.tasks(); ++i)
        jobs[flat.rank_of[i]].push_back({head[i], flat.shortest[i], tail[i]});
    return jobs;
}

std::int64_t rank_work(const Flat& flat) {
    std::int64_t largest = 0;
    for (const auto& jobs : jobs_by_rank(flat, flat.head, flat.tail))
        if (!jobs.empty()) largest = std::max(largest, head_work_tail(jobs));
    return largest;
}

std::int64_t one_machine(const Flat& flat, const Tightened& windows) {
    std::int64_t largest = 0;
    for (const auto& jobs : jobs_by_rank(flat, windows.head, windows.tail))
        largest = std::max(largest, preemptive_makespan(jobs));
    return largest;
}

// Ranks by memory pressure, the highest first; those below the least left out.
std::vector<std::uint32_t> short_ranks(const Flat& flat, const Tightened& windows, std::int64_t bound) {
    if (flat.tasks() > tuning.root.most_tasks) return {};
    std::vector<char> has_tasks(flat.ranks(), 0);
    for (const std::uint32_t r : flat.rank_of) has_tasks[r] = 1;
    std::vector<std::pair<double, std::uint32_t>> found;
    for (std::uint32_t r = 0; r < flat.ranks(); ++r) {
        if (has_tasks[r] == 0 || flat.room[r] == unlimited || flat.room[r] <= 0) continue;
        const double pressure = PriceBound(flat, windows, std::array{r}, bound).memory_pressure();
        if (pressure >= tuning.root.least_pressure) found.emplace_back(-pressure, r);
    }
    std::sort(found.begin(), found.end());
    std::vector<std::uint32_t> ranks;
    ranks.reserve(found.size());
    for (const auto& [pressure, r] : found) ranks.push_back(r);
    return ranks;
}

}  // namespace

RootBounds::RootBounds(const Flat& flat, BoundEffort effort) {
    const auto largest = [&] {
        return *std::max_element(all.begin(), all.end(),
                                 [](const Bound& a, const Bound& b) { return a.value < b.value; });
    };
    all = {{"critical path", Duration{critical_path(flat)}}, {"rank work", Duration{rank_work(flat)}}};
    best = largest();
    if (effort == BoundEffort::quick) return;
    windows = tightened(flat);
    all.push_back({"one machine", Duration{one_machine(flat, windows)}});
    // A makespan is a multiple of the unit, and so is its best bound.
    const std::int64_t unit = time_unit(flat);
    const auto add = [&](const char* name, std::int64_t value) {
        all.push_back({name, Duration{value + (unit - value % unit) % unit}});
    };
    add("edge finding", edge_finding_bound(flat, windows, all.back().value.count(), tuning.root.edge_work));
    best = largest();
    short_of_memory = short_ranks(flat, windows, best.value.count());
    if (short_of_memory.empty()) return;
    PriceBound prices(flat, windows, std::array{short_of_memory.front()}, best.value.count());
    prices.improve(tuning.root.price_units);
    add("memory over time", prices.value());
    best = largest();
}

std::vector<Bound> lower_bounds(const schedule::Replayer& replayer) { return RootBounds(Flat(replayer)).all; }

Bound best_bound(const schedule::Replayer& replayer, BoundEffort effort) {
    return RootBounds(Flat(replayer), effort).best;
}

}  // namespace pipeweaver::search
