#include "tests/search/random_problem.hpp"

#include "pipeweaver/schedule/problem.hpp"

#include <algorithm>

namespace pipeweaver::search_tests {

using namespace pipeweaver::schedule;

namespace {

// Appends ready tasks in all possible orders; memory and the incumbent cut branches.
class Force {
public:
    Force(const Problem& problem, std::vector<TaskCost> costs, std::optional<Duration>& best)
        : problem_(problem),
          costs_(std::move(costs)),
          best_(best),
          missing_(costs_.size(), 0),
          ends_(costs_.size(), Duration{-1}),
          clock_(problem.ranks.size()),
          used_(problem.ranks.size()) {
        for (const Edge& edge : problem.edges) ++missing_[index(edge.to)];
    }

    void extend(std::size_t placed) {
        if (placed == costs_.size()) return finish();
        for (std::size_t i = 0; i < costs_.size(); ++i)
            if (ends_[i] < Duration::zero() && missing_[i] == 0) place(i, placed);
    }

private:
    void finish() {
        Duration makespan{};
        for (std::size_t i = 0; i < costs_.size(); ++i)
            makespan = std::max(makespan, ends_[i] + problem_.ranks[index(problem_.tasks[i].rank)].tail);
        if (!best_ || makespan < *best_) best_ = makespan;
    }

    void place(std::size_t i, std::size_t placed) {
        const std::size_t r = index(problem_.tasks[i].rank);
        const Bytes level = used_[r] + costs_[i].acquire, after = level - costs_[i].release;
        const auto& capacity = problem_.ranks[r].capacity;
        if ((capacity && problem_.ranks[r].base + level > *capacity) || after < Bytes{}) return;
        Duration start = clock_[r];
        for (const Edge& edge : problem_.edges)
            if (index(edge.to) == i) start = std::max(start, ends_[index(edge.from)] + edge.lag);
        const Duration end = start + costs_[i].duration;
        if (best_ && end + problem_.ranks[r].tail >= *best_) return;
        const auto clock = clock_[r];
        const auto used = used_[r];
        clock_[r] = ends_[i] = end;
        used_[r] = after;
        for (const Edge& edge : problem_.edges)
            if (index(edge.from) == i) --missing_[index(edge.to)];
        extend(placed + 1);
        for (const Edge& edge : problem_.edges)
            if (index(edge.from) == i) ++missing_[index(edge.to)];
        clock_[r] = clock;
        used_[r] = used;
        ends_[i] = Duration{-1};
    }

    const Problem& problem_;
    std::vector<TaskCost> costs_;
    std::optional<Duration>& best_;
    std::vector<int> missing_;
    std::vector<Duration> ends_, clock_;
    std::vector<Bytes> used_;
};

}  // namespace

Shape shape_in_turn(std::uint64_t number) {
    return {.ranks = 1 + static_cast<std::uint32_t>(number % 4),
            .microbatches = 1 + static_cast<std::uint32_t>(number % 6),
            .stages = 1 + static_cast<std::uint32_t>(number / 3 % 6),
            .split = number % 3 == 0,
            .modes = number % 5 == 0,
            .items = number % 2 == 0,
            .capped = true};
}

Shape three_ranks_in_turn(std::uint64_t number) {
    return {.ranks = 3,
            .microbatches = 4,
            .stages = 6,
            .split = number % 3 == 0,
            .modes = number % 5 == 0,
            .items = number % 2 == 0,
            .capped = number % 4 != 0};
}

Problem random_problem(const Shape& shape, std::uint64_t number) {
    return parse_problem("random", testing::random_problem_text(shape, number)).problem;
}

Problem with_little_room(Problem problem, std::int64_t more) {
    for (std::size_t r = 0; r < problem.ranks.size(); ++r) problem.ranks[r].capacity = problem.ranks[r].base;
    const auto raise = [&](TaskId task, Bytes needed) {
        Rank& rank = problem.ranks[index(problem.tasks[index(task)].rank)];
        rank.capacity = std::max(*rank.capacity, rank.base + needed);
    };
    std::vector<char> paired(problem.tasks.size(), 0);
    for (const Pair& pair : problem.pairs) {
        std::optional<Bytes> least;
        for (const Mode& mode : pair.modes) {
            const Bytes peak = mode.held + std::max(mode.forward_transient, mode.transient);
            least = std::min(least.value_or(peak), peak);
        }
        raise(pair.forward, *least);
        paired[index(pair.forward)] = paired[index(pair.backward)] = 1;
        if (pair.weight) paired[index(*pair.weight)] = 1;
    }
    for (std::uint32_t i = 0; i < problem.tasks.size(); ++i)
        if (paired[i] == 0) raise(TaskId{i}, problem.tasks[i].acquire);
    for (std::size_t r = 0; r < problem.ranks.size(); ++r) {
        if (r % 3 == 1) *problem.ranks[r].capacity = *problem.ranks[r].capacity + Bytes{more};
        if (r % 3 == 2) problem.ranks[r].capacity.reset();
    }
    validate(problem);
    return problem;
}

std::optional<Duration> best_by_force(const Problem& problem) {
    const Replayer replayer(problem);
    std::optional<Duration> best;
    std::vector<std::uint32_t> mode(problem.pairs.size(), 0);
    while (true) {
        Force(problem, replayer.costs(mode), best).extend(0);
        std::size_t k = 0;
        while (k < mode.size() && ++mode[k] == problem.pairs[k].modes.size()) mode[k++] = 0;
        if (k == mode.size()) return best;
    }
}

}  // namespace pipeweaver::search_tests
