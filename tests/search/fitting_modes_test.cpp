#include "search/instance/fitting_modes.hpp"

#include "search/bounds/price_forest.hpp"
#include "search/exact/exact_space.hpp"
#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

struct Memory {
    std::int64_t held = 0, forward_transient = 0, transient = 0, kept = 0;
};

// A forward and a backward on a rank with a base of 3 and room for 10, in these modes, each a ns slower than the one
// before in both passes; with `split` a weight gradient as well.
Problem with_modes(const std::vector<Memory>& modes, bool split = false) {
    Problem problem;
    problem.name = "modes";
    problem.ranks = {{Bytes{13}, Bytes{3}, {}}};
    problem.tasks = {task_of(0, TaskKind::forward, 1), task_of(0, TaskKind::backward, 1)};
    problem.edges = {edge_of(0, 1)};
    Pair pair{TaskId{0}, TaskId{1}, {}, {}};
    if (split) {
        problem.tasks.push_back(task_of(0, TaskKind::weight_gradient, 1));
        problem.edges.push_back(edge_of(1, 2));
        pair.weight = TaskId{2};
    }
    for (const Memory& one : modes) {
        const Duration time{1 + static_cast<std::int64_t>(pair.modes.size())};
        pair.modes.push_back({time, time, split ? time : Duration{}, Bytes{one.held}, Bytes{one.forward_transient},
                              Bytes{one.transient}, Bytes{one.kept}});
    }
    const auto costs = costs_in(pair, pair.modes.front());
    for (std::size_t i = 0; i < problem.tasks.size(); ++i) apply(problem.tasks[i], costs[i]);
    problem.pairs = {pair};
    return problem;
}

// Which of the modes fit, by the first task; all tasks of the pair say the same.
std::vector<int> fitting(const Problem& problem) {
    const Replayer replayer(problem);
    const Flat flat(replayer);
    std::vector<int> fits;
    for (std::uint32_t m = 0; m < flat.modes(0); ++m) {
        fits.push_back(flat.fits(0, m) ? 1 : 0);
        for (std::uint32_t i = 1; i < flat.tasks(); ++i)
            if (flat.pair_of[i] == 0) CHECK(flat.fits(i, m) == flat.fits(0, m));
    }
    return fits;
}

}  // namespace

TEST_CASE("a mode fits if its rank has room for what its forward takes, and for what its backward finds and takes") {
    CHECK(fitting(with_modes({{10, 0, 0}, {11, 0, 0}, {0, 11, 0}, {0, 0, 11}, {6, 4, 4}, {6, 5, 4}, {6, 4, 5}})) ==
          std::vector{1, 0, 0, 0, 1, 0, 0});
}

TEST_CASE("a weight gradient takes nothing that its backward has not held") {
    CHECK(fitting(with_modes({{6, 0, 4, 10}, {6, 0, 5, 1}, {4, 0, 0, 4}}, true)) == std::vector{1, 0, 1});
}

TEST_CASE("every mode fits where a rank has no capacity, and where none would") {
    auto problem = with_modes({{20, 0, 0}, {30, 0, 0}, {1, 0, 0}});
    CHECK(fitting(problem) == std::vector{0, 0, 1});
    problem.ranks[0].capacity.reset();
    CHECK(fitting(problem) == std::vector{1, 1, 1});
    // The forward fits in the first mode and the backward in the second: no schedule, and no task is to blame alone.
    CHECK(fitting(with_modes({{0, 0, 11}, {0, 11, 0}})) == std::vector{1, 1});
}

TEST_CASE("every mode fits where a task without a pair gives back more than it takes") {
    auto problem = with_modes({{8, 0, 0, 8}, {8, 0, 4, 8}}, true);
    CHECK(fitting(problem) == std::vector{1, 0});
    const auto add = [&](std::int64_t acquire, std::int64_t release) {
        problem.tasks.push_back(task_of(0, TaskKind::other, 1));
        problem.tasks.back().acquire = Bytes{acquire};
        problem.tasks.back().release = Bytes{release};
    };
    add(3, 1);
    CHECK(fitting(problem) == std::vector{1, 0});
    // Between forward and backward it gives back what the forward took: then the backward has room in its second mode.
    add(0, 2);
    CHECK(fitting(problem) == std::vector{1, 1});
    const Schedule schedule{{{TaskId{0}, TaskId{4}, TaskId{1}, TaskId{3}, TaskId{2}}}, {1}};
    CHECK(replay(problem, schedule).outcome == Outcome::completed);
}

TEST_CASE("durations, prices of memory and exact search know the modes that fit, and no others") {
    const auto problem = with_modes({{11, 0, 0}, {0, 0, 12}, {4, 2, 3}, {5, 1, 1}});
    const Replayer replayer(problem);
    const Flat flat(replayer);
    CHECK(flat.shortest == std::vector<std::int64_t>{3, 3});
    CHECK(flat.tail[0] == 3);
    const auto forest = price_forest(flat, tightened(flat), std::array<std::uint32_t, 1>{0});
    CHECK(forest.nodes[0].acquire == 0.6);
    CHECK(forest.nodes[0].acquire - forest.nodes[0].release == doctest::Approx(0.4));
    const ExactSpace space(flat, flat.head, flat.tail);
    std::vector<std::uint32_t> modes;
    for (const ExactClass& one : space.classes(0)) modes.insert(modes.end(), one.modes.begin(), one.modes.end());
    CHECK(modes == std::vector<std::uint32_t>{2, 3});
}
