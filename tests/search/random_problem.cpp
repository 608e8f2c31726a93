#include "tests/search/random_problem.hpp"

#include <algorithm>
#include <map>

namespace pipeweaver::search_tests {

using namespace pipeweaver::emulator;

namespace {

class Maker {
public:
    Maker(const Shape& shape, std::uint64_t number) : shape_(shape), random_(number, 77) {}

    Problem make() {
        problem_.name = "random";
        problem_.ranks.resize(shape_.ranks);
        for (auto& rank : problem_.ranks) {
            rank.base = Bytes{number(0, 5)};
            rank.tail = Duration{number(0, 6)};
        }
        for (std::uint32_t m = 0; m < shape_.microbatches; ++m) microbatch(m);
        if (shape_.capped) cap();
        return std::move(problem_);
    }

private:
    std::int64_t number(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
    }

    Mode mode(std::int64_t slower) {
        Mode made{Duration{number(1, 9)},
                  Duration{number(1, 15) + 3 * slower},
                  {},
                  Bytes{number(1, 9)},
                  Bytes{number(0, 2)},
                  Bytes{number(0, 3)},
                  {}};
        if (slower > 0) made.held = Bytes{made.held.count / (1 + slower)};
        if (shape_.split) {
            made.weight = Duration{number(1, 6)};
            made.kept = Bytes{std::min(made.held.count, number(0, 4))};
        }
        return made;
    }

    TaskId add(std::uint32_t stage, std::uint32_t microbatch, std::int64_t item, TaskKind kind, const TaskCost& cost) {
        problem_.tasks.push_back({RankId{stage % shape_.ranks}, kind, cost.duration, cost.acquire, cost.release, "t",
                                  stage, microbatch, item, stage == 0 ? "encoder" : "body"});
        return TaskId{static_cast<std::uint32_t>(problem_.tasks.size() - 1)};
    }

    void join(TaskId from, TaskId to) { problem_.edges.push_back({from, to, Duration{number(0, 2)}}); }

    // A pair (with its weight gradient) of one stage; its backward waits for its forward.
    Pair pair(std::uint32_t stage, std::uint32_t microbatch, std::int64_t item) {
        Pair made;
        if (shape_.split) made.weight = TaskId{};
        for (std::int64_t k = 0; k < (shape_.modes ? 3 : 1); ++k) made.modes.push_back(mode(k));
        const auto costs = costs_in(made, made.modes.front());
        made.forward = add(stage, microbatch, item, TaskKind::forward, costs[0]);
        made.backward =
            add(stage, microbatch, item, shape_.split ? TaskKind::input_gradient : TaskKind::backward, costs[1]);
        problem_.edges.push_back({made.forward, made.backward, {}});
        if (shape_.split) {
            made.weight = add(stage, microbatch, item, TaskKind::weight_gradient, costs[2]);
            problem_.edges.push_back({made.backward, *made.weight, {}});
        }
        if (shape_.modes) problem_.pairs.push_back(made);
        return made;
    }

    void microbatch(std::uint32_t m) {
        const std::int64_t items = shape_.items ? number(0, 2) : 1;
        std::vector<Pair> before;
        for (std::int64_t i = 0; i < items; ++i) before.push_back(pair(0, m, i));
        for (std::uint32_t s = 1; s < shape_.stages; ++s) {
            const Pair here = pair(s, m, 0);
            for (const Pair& previous : before) {
                join(previous.forward, here.forward);
                join(here.backward, previous.backward);
            }
            before = {here};
        }
    }

    // Between what the largest task needs alone and what a few microbatches need.
    void cap() {
        std::vector<std::int64_t> alone(shape_.ranks, 0), together(shape_.ranks, 0);
        for (const Task& task : problem_.tasks) {
            const std::size_t r = index(task.rank);
            alone[r] = std::max(alone[r], task.acquire.count + 12);
            together[r] += task.kind == TaskKind::forward ? task.acquire.count : 0;
        }
        for (std::size_t r = 0; r < shape_.ranks; ++r)
            problem_.ranks[r].capacity =
                problem_.ranks[r].base + Bytes{alone[r] + number(0, std::max<std::int64_t>(1, together[r] / 2))};
    }

    Shape shape_;
    Random random_;
    Problem problem_;
};

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

Problem random_problem(const Shape& shape, std::uint64_t number) { return Maker(shape, number).make(); }

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
