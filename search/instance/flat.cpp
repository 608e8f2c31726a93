#include "search/instance/flat.hpp"

#include "pipeweaver/base/error.hpp"
#include "search/instance/fitting_modes.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <tuple>

namespace pipeweaver::search {

namespace {

using schedule::Replayer;
using schedule::TaskKind;

struct Link {
    std::uint32_t from, to;
    std::int64_t lag;
};

// Two tasks joined more than once are joined once, by the longest lag, at the first of the links' places.
void unify(std::vector<Link>& links) {
    std::vector<std::uint32_t> order(links.size());
    std::iota(order.begin(), order.end(), 0U);
    const auto ends = [&](std::uint32_t link) { return std::pair(links[link].from, links[link].to); };
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return ends(a) < ends(b); });
    std::vector<char> again(links.size(), 0);
    for (std::size_t k = 1, first = 0; k < order.size(); ++k) {
        if (ends(order[k]) != ends(order[first])) {
            first = k;
            continue;
        }
        again[order[k]] = 1;
        links[order[first]].lag = std::max(links[order[first]].lag, links[order[k]].lag);
    }
    std::size_t kept = 0;
    for (std::size_t k = 0; k < links.size(); ++k)
        if (again[k] == 0) links[kept++] = links[k];
    links.resize(kept);
}

std::vector<Link> links_of(const schedule::Problem& problem, const Rules& rules) {
    std::vector<Link> links;
    links.reserve(problem.edges.size());
    const auto number = [](TaskId task) { return static_cast<std::uint32_t>(task); };
    for (const auto& edge : problem.edges) links.push_back({number(edge.from), number(edge.to), edge.lag.count()});
    // Both ends are on one rank, so the machine order alone makes such a link hold in time.
    for (const auto& fixed : rules.fixed_order)
        for (std::size_t i = 0; i + 1 < fixed.size(); ++i) links.push_back({number(fixed[i]), number(fixed[i + 1]), 0});
    unify(links);
    return links;
}

Groups<Arc> grouped(std::size_t tasks, const std::vector<Link>& links, bool by_target) {
    Groups<Arc> groups;
    groups.first.assign(tasks + 1, 0);
    for (const Link& link : links) ++groups.first[(by_target ? link.to : link.from) + 1];
    for (std::size_t i = 0; i < tasks; ++i) groups.first[i + 1] += groups.first[i];
    groups.items.resize(links.size());
    auto next = groups.first;
    for (const Link& link : links)
        groups.items[next[by_target ? link.to : link.from]++] = {by_target ? link.from : link.to, link.lag};
    return groups;
}

Groups<Arc> without_implied(const Groups<Arc>& arcs, const std::vector<std::uint32_t>& rank_of) {
    Groups<Arc> kept;
    for (std::uint32_t i = 0; i < arcs.size(); ++i) {
        for (const Arc& arc : arcs[i])
            if (rank_of[arc.task] != rank_of[i] || arc.lag_ns > 0) kept.items.push_back(arc);
        kept.first.push_back(static_cast<std::uint32_t>(kept.items.size()));
    }
    return kept;
}

Cost plain(const schedule::TaskCost& cost) { return {cost.duration.count(), cost.acquire.count, cost.release.count}; }

void fill_costs(Flat& flat) {
    const auto& problem = flat.problem();
    flat.cost_first.push_back(0);
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        const std::uint32_t pair = flat.pair_of[i];
        const std::size_t modes = pair == Replayer::unpaired ? 1 : problem.pairs[pair].modes.size();
        for (std::uint32_t m = 0; m < modes; ++m) flat.cost_table.push_back(plain(flat.replayer->cost(i, m)));
        flat.cost_first.push_back(static_cast<std::uint32_t>(flat.cost_table.size()));
    }
}

void fill_late(Flat& flat) {
    const auto& tasks = flat.problem().tasks;
    flat.late.assign(flat.tasks(), 0);
    for (const std::uint32_t i : flat.topological) {
        const TaskKind kind = tasks[i].kind;
        bool late = kind != TaskKind::forward && kind != TaskKind::other;
        if (kind == TaskKind::other)
            for (const Arc& arc : flat.before[i]) late = late || flat.late[arc.task] != 0;
        flat.late[i] = late ? 1 : 0;
    }
}

// A weight gradient comes as soon as it may: it frees memory and nothing waits longer for it.
void fill_reading(Flat& flat) {
    const auto& tasks = flat.problem().tasks;
    std::vector<std::uint32_t> index_of(flat.tasks());
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) index_of[flat.topological[i]] = i;
    const auto key = [&](std::uint32_t i) {
        return std::tuple(tasks[i].kind != TaskKind::weight_gradient, tasks[i].microbatch, tasks[i].item, index_of[i]);
    };
    const auto keys = keys_by(flat.tasks(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
    flat.reading = sorted_by_key(flat.before, flat.after, keys);
    flat.place.resize(flat.tasks());
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) flat.place[flat.reading[i]] = i;
}

void fill_shortest(Flat& flat) {
    flat.fits_table = fitting_modes(flat);
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        std::int64_t least = INT64_MAX;
        for (std::uint32_t m = 0; m < flat.modes(i); ++m)
            if (flat.fits(i, m)) least = std::min(least, flat.cost(i, m).duration);
        flat.shortest.push_back(least);
    }
}

void fill_paths(Flat& flat) {
    flat.head.assign(flat.tasks(), 0);
    flat.tail.assign(flat.tasks(), 0);
    for (const std::uint32_t i : flat.topological)
        for (const Arc& arc : flat.before[i])
            flat.head[i] = std::max(flat.head[i], flat.head[arc.task] + flat.shortest[arc.task] + arc.lag_ns);
    for (auto i = flat.topological.rbegin(); i != flat.topological.rend(); ++i) {
        flat.tail[*i] = flat.rank_tail[flat.rank_of[*i]];
        for (const Arc& arc : flat.after[*i])
            flat.tail[*i] = std::max(flat.tail[*i], arc.lag_ns + flat.shortest[arc.task] + flat.tail[arc.task]);
    }
}

}  // namespace

std::vector<std::uint32_t> sorted_by_key(const Groups<Arc>& before, const Groups<Arc>& after,
                                         std::span<const std::uint32_t> key) {
    const std::size_t tasks = key.size();
    std::vector<std::uint32_t> with_key(tasks), missing(tasks), sorted;
    sorted.reserve(tasks);
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < tasks; ++i) {
        with_key[key[i]] = i;
        missing[i] = static_cast<std::uint32_t>(before[i].size());
        if (missing[i] == 0) ready.push(key[i]);
    }
    while (!ready.empty()) {
        const std::uint32_t task = with_key[ready.top()];
        ready.pop();
        sorted.push_back(task);
        for (const Arc& arc : after[task])
            if (--missing[arc.task] == 0) ready.push(key[arc.task]);
    }
    return sorted;
}

Flat::Flat(const Replayer& with, const Rules& rules) : replayer(&with) {
    const auto& source = with.problem();
    for (const auto& rank : source.ranks) {
        room.push_back(rank.capacity ? (*rank.capacity - rank.base).count : unlimited);
        rank_begin.push_back(0);
        rank_tail.push_back(rank.tail.count());
    }
    for (std::size_t i = 0; i < source.tasks.size(); ++i) {
        rank_of.push_back(static_cast<std::uint32_t>(source.tasks[i].rank));
        pair_of.push_back(with.pair_of(i));
    }
    const auto links = links_of(source, rules);
    before = grouped(rank_of.size(), links, true);
    after = grouped(rank_of.size(), links, false);
    cross_before = without_implied(before, rank_of);
    cross_after = without_implied(after, rank_of);
    fill_costs(*this);
    topological = sorted_by_key(before, after, keys_by(tasks(), [](std::uint32_t, std::uint32_t) { return false; }));
    if (topological.size() < rank_of.size())
        fail(ErrorKind::input, "rules: the fixed order of a rank contradicts the edges of '{}'", source.name);
    fill_late(*this);
    fill_reading(*this);
    fill_shortest(*this);
    fill_paths(*this);
}

std::vector<Cost> Flat::costs(std::span<const std::uint32_t> mode) const {
    std::vector<Cost> all(tasks());
    for (std::uint32_t i = 0; i < tasks(); ++i)
        all[i] = cost(i, pair_of[i] == Replayer::unpaired ? 0 : mode[pair_of[i]]);
    return all;
}

std::array<std::uint32_t, 3> tasks_of(const schedule::Pair& pair) {
    const auto last = static_cast<std::uint32_t>(pair.weight ? *pair.weight : pair.backward);
    return {static_cast<std::uint32_t>(pair.forward), static_cast<std::uint32_t>(pair.backward), last};
}

std::vector<std::uint32_t> components_of(const Flat& flat) {
    std::vector<std::uint32_t> parent(flat.tasks());
    std::iota(parent.begin(), parent.end(), 0U);
    const auto root = [&](std::uint32_t i) {
        while (parent[i] != i) i = parent[i] = parent[parent[i]];
        return i;
    };
    for (std::uint32_t i = 0; i < flat.tasks(); ++i)
        for (const Arc& arc : flat.after[i]) parent[root(i)] = root(arc.task);
    // Numbered by their first task in reading order, so that nothing depends on how the roots fell.
    std::vector<std::uint32_t> number(flat.tasks(), UINT32_MAX), component(flat.tasks());
    std::uint32_t next = 0;
    for (const std::uint32_t i : flat.reading) {
        std::uint32_t& mine = number[root(i)];
        if (mine == UINT32_MAX) mine = next++;
        component[i] = mine;
    }
    return component;
}

bool returns_all_memory(const Flat& flat) {
    std::vector<std::int64_t> left(flat.ranks(), 0);
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) left[flat.rank_of[i]] += flat.cost(i, 0).net();
    return std::all_of(left.begin(), left.end(), [](std::int64_t bytes) { return bytes == 0; });
}

Flat reversed(const Flat& flat) {
    Flat turned = flat;
    std::swap(turned.before, turned.after);
    std::swap(turned.cross_before, turned.cross_after);
    std::swap(turned.rank_begin, turned.rank_tail);
    std::swap(turned.head, turned.tail);
    for (Cost& cost : turned.cost_table) std::swap(cost.acquire, cost.release);
    for (auto& late : turned.late) late = late != 0 ? 0 : 1;
    std::reverse(turned.topological.begin(), turned.topological.end());
    std::reverse(turned.reading.begin(), turned.reading.end());
    for (auto& place : turned.place) place = turned.tasks() - 1 - place;
    return turned;
}

std::int64_t longest_makespan(const Flat& flat) {
    std::int64_t sum = 0;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) {
        std::int64_t most = 0;
        for (std::uint32_t m = 0; m < flat.modes(i); ++m) most = std::max(most, flat.cost(i, m).duration);
        sum += most;
    }
    for (const Arc& arc : flat.before.items) sum += arc.lag_ns;
    return std::accumulate(flat.rank_tail.begin(), flat.rank_tail.end(), sum);
}

std::int64_t time_unit(const Flat& flat) {
    std::int64_t unit = 0;
    for (const Cost& cost : flat.cost_table) unit = std::gcd(unit, cost.duration);
    for (const Arc& arc : flat.before.items) unit = std::gcd(unit, arc.lag_ns);
    for (const std::int64_t tail : flat.rank_tail) unit = std::gcd(unit, tail);
    return std::max<std::int64_t>(unit, 1);
}

schedule::Schedule as_schedule(const Flat& flat, std::span<const std::uint32_t> sequence,
                               std::span<const std::uint32_t> mode) {
    schedule::Schedule schedule;
    schedule.order.resize(flat.ranks());
    for (const std::uint32_t task : sequence) schedule.order[flat.rank_of[task]].push_back(TaskId{task});
    schedule.mode.assign(mode.begin(), mode.end());
    return schedule;
}

}  // namespace pipeweaver::search
