#include "search/bounds/one_machine.hpp"

#include "search/tuning.hpp"

#include <algorithm>
#include <queue>

namespace pipeweaver::search {

std::int64_t head_work_tail(std::span<const Job> jobs) {
    std::int64_t head = INT64_MAX, work = 0, tail = INT64_MAX;
    for (const Job& job : jobs) {
        head = std::min(head, job.head);
        work += job.work;
        tail = std::min(tail, job.tail);
    }
    return head + work + tail;
}

std::int64_t preemptive_makespan(std::vector<Job> jobs) {
    std::sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.head < b.head; });
    struct Open {
        std::int64_t tail, work;
        bool operator<(const Open& other) const { return tail < other.tail; }
    };
    std::priority_queue<Open> open;
    std::int64_t now = 0, makespan = 0;
    std::size_t next = 0;
    while (next < jobs.size() || !open.empty()) {
        if (open.empty()) now = std::max(now, jobs[next].head);
        for (; next < jobs.size() && jobs[next].head <= now; ++next) open.push({jobs[next].tail, jobs[next].work});
        Open job = open.top();
        open.pop();
        const std::int64_t until = next < jobs.size() ? jobs[next].head : INT64_MAX;
        const std::int64_t part = std::min(job.work, until - now);
        now += part;
        if (part == job.work)
            makespan = std::max(makespan, now + job.tail);
        else
            open.push({job.tail, job.work - part});
    }
    return makespan;
}

namespace {

// Raises heads in one direction of time. Ancestors of a task are found by walking its arcs backwards in topological
// order, longest paths to the task's start on the way.
class Raise {
public:
    Raise(const Flat& flat, const Groups<Arc>& before, std::vector<std::uint32_t> order)
        : flat_(flat), before_(before), order_(std::move(order)), index_(order_.size()), distance_(order_.size(), -1) {
        for (std::uint32_t i = 0; i < order_.size(); ++i) index_[order_[i]] = i;
    }

    void run(std::vector<std::int64_t>& head) {
        // The pasts of all tasks together may be quadratic in a problem of one component; then most is left out.
        std::size_t budget = tuning.root.most_ancestors;
        for (const std::uint32_t task : order_) {
            for (const Arc& arc : before_[task])
                head[task] = std::max(head[task], head[arc.task] + flat_.shortest[arc.task] + arc.lag_ns);
            collect(task, budget);
            raise(task, head);
            for (const std::uint32_t seen : past_) distance_[seen] = -1;
            if (past_.size() > budget) budget = 0;
            budget -= std::min(budget, past_.size());
        }
    }

private:
    // past_: ancestors of `task`, at most `most`; distance_: longest path from their end to its start.
    void collect(std::uint32_t task, std::size_t most) {
        past_.clear();
        std::priority_queue<std::uint32_t> open;
        const auto reach = [&](std::uint32_t from, std::int64_t path) {
            if (distance_[from] < 0) open.push(index_[from]);
            distance_[from] = std::max(distance_[from], path);
        };
        for (const Arc& arc : before_[task]) reach(arc.task, arc.lag_ns);
        while (!open.empty()) {
            const std::uint32_t seen = order_[open.top()];
            open.pop();
            past_.push_back(seen);
            if (past_.size() > most) break;
            for (const Arc& arc : before_[seen]) reach(arc.task, distance_[seen] + flat_.shortest[seen] + arc.lag_ns);
        }
        // What was reached and not taken must be forgotten as well.
        for (; !open.empty(); open.pop()) distance_[order_[open.top()]] = -1;
    }

    void raise(std::uint32_t task, std::vector<std::int64_t>& head) {
        std::sort(past_.begin(), past_.end(), [&](std::uint32_t a, std::uint32_t b) {
            return std::pair(flat_.rank_of[a], a) < std::pair(flat_.rank_of[b], b);
        });
        for (std::size_t i = 0; i < past_.size();) {
            const std::uint32_t rank = flat_.rank_of[past_[i]];
            jobs_.clear();
            for (; i < past_.size() && flat_.rank_of[past_[i]] == rank; ++i)
                jobs_.push_back({head[past_[i]], flat_.shortest[past_[i]], distance_[past_[i]]});
            if (jobs_.size() > 1) head[task] = std::max(head[task], preemptive_makespan(jobs_));
        }
    }

    const Flat& flat_;
    const Groups<Arc>& before_;
    std::vector<std::uint32_t> order_, index_, past_;
    std::vector<std::int64_t> distance_;
    std::vector<Job> jobs_;
};

}  // namespace

Tightened tightened(const Flat& flat) {
    Tightened result{flat.head, flat.tail};
    Raise(flat, flat.before, flat.topological).run(result.head);
    Raise(flat, flat.after, {flat.topological.rbegin(), flat.topological.rend()}).run(result.tail);
    return result;
}

}  // namespace pipeweaver::search
