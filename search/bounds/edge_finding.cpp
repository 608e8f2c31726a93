#include "search/bounds/edge_finding.hpp"

#include "search/tuning.hpp"

#include <algorithm>

namespace pipeweaver::search {

namespace {

struct Window {
    std::int64_t head = 0, work = 0, end = 0;  // end: the latest
    std::int64_t raised = 0;                   // head
    std::int64_t from_here = 0;                // earliest end of the tasks of S that begin no earlier
    std::uint32_t task = 0;
};

constexpr std::int64_t never = INT64_MIN / 2;

// Raises `raised` of all tasks of a rank. False: they do not fit. Sets S are all tasks with latest ends up to some
// `end`, of these those with heads from some head on.
bool find_edges(std::vector<Window>& windows) {
    std::sort(windows.begin(), windows.end(),
              [](const Window& a, const Window& b) { return std::pair(a.head, a.task) < std::pair(b.head, b.task); });
    for (Window& window : windows) window.raised = window.head;
    for (const Window& last : windows) {
        std::int64_t work = 0, end = never, begun = never;
        for (auto one = windows.rbegin(); one != windows.rend(); ++one) {
            if (one->end <= last.end) {
                work += one->work;
                end = std::max(end, one->head + work);
            }
            one->from_here = end;
        }
        if (end > last.end) return false;
        for (Window& one : windows) {
            if (one.end <= last.end) {
                begun = std::max(begun, one.head + work);
                work -= one.work;
                continue;
            }
            if (work > 0 && one.head + work + one.work > last.end) one.raised = std::max(one.raised, one.from_here);
            if (begun + one.work > last.end) one.raised = std::max(one.raised, end);
        }
    }
    return true;
}

class Tightening {
public:
    Tightening(const Flat& flat, std::int64_t limit) : flat_(flat), limit_(limit), on_rank_(flat.ranks()) {
        for (std::uint32_t i = 0; i < flat.tasks(); ++i) on_rank_[flat.rank_of[i]].push_back(i);
    }

    // Whether no rank by itself takes more than this work: one of many tasks would take minutes.
    bool suits(std::uint64_t work) const {
        return std::all_of(on_rank_.begin(), on_rank_.end(), [&](const auto& tasks) { return cost_of(tasks) <= work; });
    }

    bool run(Tightened& windows, std::uint64_t& work) {
        auto& [head, tail] = windows;
        for (bool changed = true; changed && work > 0;) {
            changed = false;
            for (const auto& tasks : on_rank_) {
                work -= std::min(work, cost_of(tasks));
                if (!raise(tasks, head, tail, changed) || !raise(tasks, tail, head, changed)) return false;
            }
            work -= std::min<std::uint64_t>(work, flat_.tasks());
            if (!carry(head, tail)) return false;
        }
        return true;
    }

private:
    static std::uint64_t cost_of(const std::vector<std::uint32_t>& tasks) {
        return 2 * std::uint64_t{tasks.size()} * tasks.size();
    }

    // Heads, or with time reversed tails.
    bool raise(const std::vector<std::uint32_t>& tasks, std::vector<std::int64_t>& head,
               const std::vector<std::int64_t>& tail, bool& changed) {
        machine_.clear();
        for (const std::uint32_t i : tasks)
            machine_.push_back({head[i], flat_.shortest[i], limit_ - tail[i], head[i], never, i});
        if (!find_edges(machine_)) return false;
        for (const Window& window : machine_) {
            changed = changed || window.raised > head[window.task];
            head[window.task] = window.raised;
        }
        return true;
    }

    bool carry(std::vector<std::int64_t>& head, std::vector<std::int64_t>& tail) const {
        for (const std::uint32_t i : flat_.topological)
            for (const Arc& arc : flat_.before[i])
                head[i] = std::max(head[i], head[arc.task] + flat_.shortest[arc.task] + arc.lag_ns);
        for (auto i = flat_.topological.rbegin(); i != flat_.topological.rend(); ++i) {
            for (const Arc& arc : flat_.after[*i])
                tail[*i] = std::max(tail[*i], arc.lag_ns + flat_.shortest[arc.task] + tail[arc.task]);
            if (head[*i] + flat_.shortest[*i] + tail[*i] > limit_) return false;
        }
        return true;
    }

    const Flat& flat_;
    std::int64_t limit_;
    std::vector<std::vector<std::uint32_t>> on_rank_;
    std::vector<Window> machine_;
};

}  // namespace

bool tighten_for(const Flat& flat, std::int64_t limit, Tightened& windows, std::uint64_t& work) {
    return Tightening(flat, limit).run(windows, work);
}

std::int64_t edge_finding_bound(const Flat& flat, const Tightened& windows, std::int64_t bound, std::uint64_t work) {
    if (!Tightening(flat, bound).suits(work)) return bound;
    const auto refuted = [&](std::int64_t limit) {
        Tightened tried = windows;
        return !tighten_for(flat, limit, tried, work);
    };
    // Ever longer steps up, then ever shorter ones.
    const std::int64_t shortest_step = std::max<std::int64_t>(1, bound / tuning.root.edge_steps);
    std::int64_t step = shortest_step * tuning.root.first_edge_step;
    while (work > 0 && refuted(bound + step - 1)) {
        bound += step;
        step *= 2;
    }
    for (step /= 2; step >= shortest_step && work > 0; step /= 2)
        if (refuted(bound + step - 1)) bound += step;
    return bound;
}

}  // namespace pipeweaver::search
