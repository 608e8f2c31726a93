#include "pipeweaver/schedule/problem.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "schedule/graph.hpp"

#include <algorithm>
#include <limits>

namespace pipeweaver::schedule {

char letter(TaskKind kind) { return "FBIWX"[static_cast<std::size_t>(kind)]; }

std::array<TaskCost, 3> costs_in(const Pair& pair, const Mode& mode) {
    const Bytes kept = pair.weight ? mode.kept : Bytes{};
    return {{{mode.forward, mode.held + mode.forward_transient, mode.forward_transient},
             {mode.backward, mode.transient, mode.held + mode.transient - kept},
             {mode.weight, Bytes{}, kept}}};
}

void apply(Task& task, const TaskCost& cost) {
    task.duration = cost.duration;
    task.acquire = cost.acquire;
    task.release = cost.release;
}

namespace {

constexpr std::size_t most_tasks = 100'000'000;

// Sums of times or bytes, refused before they can overflow. What is negative is refused elsewhere.
class Sum {
public:
    Sum(std::string_view what, std::int64_t most) : what_(what), most_(most) {}
    void add(std::int64_t value) {
        if (value > most_ - total_) fail(ErrorKind::input, "the sum of all {} exceeds {}", what_, most_);
        total_ += std::max<std::int64_t>(0, value);
    }

private:
    std::string_view what_;
    std::int64_t most_;
    std::int64_t total_ = 0;
};

// Where something is is spelled out only for what is wrong: a step that is built has thousands of places.
template <class Where>
void require_task(const Problem& problem, TaskId task, const Where& where) {
    if (index(task) >= problem.tasks.size())
        fail(ErrorKind::input, "{}: there is no task {}, the last is {}", where(), index(task),
             problem.tasks.size() - 1);
}

template <class Where>
void require_not_negative(std::int64_t value, const Where& where) {
    if (value < 0) fail(ErrorKind::input, "{}: {}", where(), must_be(value, "a whole number from 0"));
}

void validate_ranks(const Problem& problem) {
    if (problem.ranks.empty()) fail(ErrorKind::input, "ranks: is empty, at least one is needed");
    for (std::size_t r = 0; r < problem.ranks.size(); ++r) {
        const Rank& rank = problem.ranks[r];
        require_not_negative(rank.base.count, [&] { return fmt::format("ranks[{}].base_bytes", r); });
        require_not_negative(rank.tail.count(), [&] { return fmt::format("ranks[{}].tail_ns", r); });
        if (rank.capacity && rank.base > *rank.capacity)
            fail(ErrorKind::limit, "ranks[{}]: base_bytes {} exceeds capacity_bytes {}: {} bytes short", r,
                 rank.base.count, rank.capacity->count, (rank.base - *rank.capacity).count);
    }
}

void validate_tasks(const Problem& problem) {
    if (problem.tasks.empty()) fail(ErrorKind::input, "tasks: is empty, at least one is needed");
    if (problem.tasks.size() > most_tasks)
        fail(ErrorKind::input, "tasks: has {} entries, allowed are {}", problem.tasks.size(), most_tasks);
    for (std::size_t i = 0; i < problem.tasks.size(); ++i) {
        const Task& task = problem.tasks[i];
        if (index(task.rank) >= problem.ranks.size())
            fail(ErrorKind::input, "tasks[{}].rank: there is no rank {}, the last is {}", i, index(task.rank),
                 problem.ranks.size() - 1);
        if (task.duration < Duration{1})
            fail(ErrorKind::input, "tasks[{}].duration_ns: {}", i,
                 must_be(task.duration.count(), "a whole number from 1"));
        require_not_negative(task.acquire.count, [&] { return fmt::format("tasks[{}].acquire_bytes", i); });
        require_not_negative(task.release.count, [&] { return fmt::format("tasks[{}].release_bytes", i); });
    }
    for (std::size_t s = 0; s < problem.stages.size(); ++s)
        if (index(problem.stages[s].rank) >= problem.ranks.size())
            fail(ErrorKind::input, "stages[{}].rank: there is no rank {}", s, index(problem.stages[s].rank));
}

void validate_edges(const Problem& problem) {
    for (std::size_t e = 0; e < problem.edges.size(); ++e) {
        const Edge& edge = problem.edges[e];
        const auto where = [&] { return fmt::format("edges[{}]", e); };
        require_task(problem, edge.from, where);
        require_task(problem, edge.to, where);
        if (edge.from == edge.to) fail(ErrorKind::input, "edges[{}]: joins task {} with itself", e, index(edge.from));
        require_not_negative(edge.lag.count(), [&] { return fmt::format("edges[{}] lag", e); });
    }
}

std::vector<TaskId> members(const Pair& pair) {
    std::vector<TaskId> tasks{pair.forward, pair.backward};
    if (pair.weight) tasks.push_back(*pair.weight);
    return tasks;
}

template <class Where>
void validate_mode(const Pair& pair, const Mode& mode, const Where& where) {
    if (mode.forward < Duration{1} || mode.backward < Duration{1} || (pair.weight && mode.weight < Duration{1}))
        fail(ErrorKind::input, "{}: a duration is below 1 ns", where());
    for (const Bytes size : {mode.held, mode.forward_transient, mode.transient, mode.kept})
        require_not_negative(size.count, where);
    if (pair.weight && mode.kept > mode.held + mode.transient)
        fail(ErrorKind::input, "{}: kept_bytes {} exceeds held_bytes + transient_bytes", where(), mode.kept.count);
}

template <class Where>
void validate_mode_zero(const Problem& problem, const Pair& pair, const Where& where) {
    const auto costs = costs_in(pair, pair.modes.front());
    const auto tasks = members(pair);
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        const Task& task = problem.tasks[index(tasks[i])];
        if (task.duration != costs[i].duration || task.acquire != costs[i].acquire || task.release != costs[i].release)
            fail(ErrorKind::input, "{}.modes[0]: differs from the fields of task {}", where(), index(tasks[i]));
    }
}

void validate_pairs(const Problem& problem) {
    std::vector<bool> paired(problem.tasks.size());
    for (std::size_t k = 0; k < problem.pairs.size(); ++k) {
        const Pair& pair = problem.pairs[k];
        const auto where = [&] { return fmt::format("pairs[{}]", k); };
        for (const TaskId task : members(pair)) {
            require_task(problem, task, where);
            if (paired[index(task)]) fail(ErrorKind::input, "{}: task {} is in two pairs", where(), index(task));
            paired[index(task)] = true;
            if (problem.tasks[index(task)].rank != problem.tasks[index(pair.forward)].rank)
                fail(ErrorKind::input, "{}: its tasks are on different ranks", where());
        }
        if (pair.modes.empty()) fail(ErrorKind::input, "{}.modes: is empty, at least one is needed", where());
        for (std::size_t j = 0; j < pair.modes.size(); ++j)
            validate_mode(pair, pair.modes[j], [&] { return fmt::format("{}.modes[{}]", where(), j); });
        validate_mode_zero(problem, pair, where);
    }
}

// Memory a task needs on top of its rank's base when it runs alone, in its most frugal mode.
std::vector<Bytes> smallest_needs(const Problem& problem) {
    std::vector<Bytes> needs;
    for (const Task& task : problem.tasks) needs.push_back(task.acquire);
    for (const Pair& pair : problem.pairs) {
        const auto tasks = members(pair);
        for (std::size_t i = 0; i < tasks.size(); ++i)
            for (const Mode& mode : pair.modes) {
                // A backward never runs without what its forward has left.
                const Bytes left = i == 1 ? mode.held : i == 2 ? mode.kept : Bytes{};
                const Bytes need = costs_in(pair, mode)[i].acquire + left;
                Bytes& least = needs[index(tasks[i])];
                least = &mode == pair.modes.data() ? need : std::min(least, need);
            }
    }
    return needs;
}

std::optional<TaskShortage> first_shortage(const Problem& problem) {
    const auto needs = smallest_needs(problem);
    for (std::size_t i = 0; i < needs.size(); ++i) {
        const RankId of_task = problem.tasks[i].rank;
        const Rank& rank = problem.ranks[index(of_task)];
        if (rank.capacity && rank.base + needs[i] > *rank.capacity)
            return TaskShortage{TaskId{static_cast<std::uint32_t>(i)}, of_task, needs[i]};
    }
    return std::nullopt;
}

void validate_sums(const Problem& problem) {
    constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
    Sum time("durations, lags and tails", largest);
    Sum memory("memory", largest / 2);  // a capacity is added to it
    for (const Task& task : problem.tasks) {
        time.add(task.duration.count());
        memory.add(task.acquire.count);
        memory.add(task.release.count);
    }
    for (const Edge& edge : problem.edges) time.add(edge.lag.count());
    for (const Rank& rank : problem.ranks) {
        time.add(rank.tail.count());
        memory.add(rank.base.count);
    }
    for (const Pair& pair : problem.pairs)
        for (const Mode& mode : pair.modes) {
            for (const Duration d : {mode.forward, mode.backward, mode.weight}) time.add(d.count());
            for (const Bytes b : {mode.held, mode.forward_transient, mode.transient, mode.kept}) memory.add(b.count);
        }
}

using Arcs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

Arcs arcs_of(const Problem& problem) {
    Arcs arcs;
    arcs.reserve(problem.edges.size());
    for (const Edge& edge : problem.edges)
        arcs.emplace_back(static_cast<std::uint32_t>(edge.from), static_cast<std::uint32_t>(edge.to));
    return arcs;
}

// Finds paths between tasks; vertices after the target in topological order cannot lead to it.
class Paths {
public:
    Paths(std::size_t tasks, Arcs arcs, const std::vector<std::uint32_t>& order)
        : arcs_(std::move(arcs)), first_(tasks + 1), place_(tasks), seen_(tasks) {
        std::sort(arcs_.begin(), arcs_.end());
        for (const auto& [from, to] : arcs_) ++first_[from + 1];
        for (std::size_t i = 0; i < tasks; ++i) first_[i + 1] += first_[i];
        for (std::uint32_t i = 0; i < tasks; ++i) place_[order[i]] = i;
    }

    bool reaches(std::uint32_t from, std::uint32_t to) {
        ++round_;
        stack_.assign(1, from);
        while (!stack_.empty()) {
            const std::uint32_t task = stack_.back();
            stack_.pop_back();
            if (task == to) return true;
            for (std::size_t a = first_[task]; a < first_[task + 1]; ++a) {
                const std::uint32_t next = arcs_[a].second;
                if (seen_[next] == round_ || place_[next] > place_[to]) continue;
                seen_[next] = round_;
                stack_.push_back(next);
            }
        }
        return false;
    }

private:
    Arcs arcs_;
    std::vector<std::size_t> first_;
    std::vector<std::uint32_t> place_, seen_, stack_;
    std::uint32_t round_ = 0;
};

void validate_graph(const Problem& problem) {
    const auto arcs = arcs_of(problem);
    const auto sorted = sort_topologically(static_cast<std::uint32_t>(problem.tasks.size()), arcs);
    if (!sorted.cycle.empty()) {
        constexpr std::size_t most = 8;
        std::vector<std::string> labels;
        for (std::size_t i = 0; i < std::min(most, sorted.cycle.size()); ++i)
            labels.push_back(fmt::format("{} '{}'", sorted.cycle[i], problem.tasks[sorted.cycle[i]].label));
        fail(ErrorKind::input, "edges: {} tasks wait for each other in a cycle: {}{}", sorted.cycle.size(),
             fmt::join(labels, " -> "), sorted.cycle.size() > most ? " -> ..." : "");
    }
    Paths paths(problem.tasks.size(), arcs, sorted.order);
    for (std::size_t k = 0; k < problem.pairs.size(); ++k) {
        const auto tasks = members(problem.pairs[k]);
        for (std::size_t i = 0; i + 1 < tasks.size(); ++i)
            if (!paths.reaches(static_cast<std::uint32_t>(tasks[i]), static_cast<std::uint32_t>(tasks[i + 1])))
                fail(ErrorKind::input, "pairs[{}]: no path of edges leads from task {} to task {}", k, index(tasks[i]),
                     index(tasks[i + 1]));
    }
}

}  // namespace

std::string TaskShortage::text(const Problem& problem) const {
    const Rank& own = problem.ranks[index(rank)];
    const Bytes missing = own.base + needed - *own.capacity;
    const bool large = missing >= Bytes{std::int64_t{1} << 20};
    return fmt::format("tasks[{}]: '{}' does not fit rank {} even alone: {} short ({} of {})", index(task),
                       problem.tasks[index(task)].label, index(rank),
                       large ? human(missing) : fmt::format("{} bytes", missing.count), human(own.base + needed),
                       human(*own.capacity));
}

std::optional<TaskShortage> check(const Problem& problem) {
    validate_ranks(problem);
    validate_tasks(problem);
    validate_edges(problem);
    validate_sums(problem);
    validate_pairs(problem);
    validate_graph(problem);
    return first_shortage(problem);
}

void validate(const Problem& problem) {
    if (const auto shortage = check(problem)) fail(ErrorKind::limit, "{}", shortage->text(problem));
}

}  // namespace pipeweaver::schedule
