#include "search/policies/zero_bubble.hpp"

#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

// Three ranks, three microbatches, all passes 1 ns; backwards split into I and W.
Problem split_chains() {
    Problem problem;
    problem.name = "split";
    problem.ranks.resize(3);
    for (std::uint32_t m = 0; m < 3; ++m) {
        const auto first = static_cast<std::uint32_t>(problem.tasks.size());
        for (const std::uint32_t rank : {0U, 1U, 2U}) problem.tasks.push_back(task_of(rank, TaskKind::forward, 1, m));
        for (const std::uint32_t rank : {2U, 1U, 0U})
            problem.tasks.push_back(task_of(rank, TaskKind::input_gradient, 1, m));
        for (const std::uint32_t rank : {2U, 1U, 0U})
            problem.tasks.push_back(task_of(rank, TaskKind::weight_gradient, 1, m));
        for (std::uint32_t k = 0; k < 5; ++k) problem.edges.push_back(edge_of(first + k, first + k + 1));
        for (std::uint32_t k = 3; k < 6; ++k) problem.edges.push_back(edge_of(first + k, first + k + 3));
    }
    validate(problem);
    return problem;
}

}  // namespace

TEST_CASE("zb-h1 postpones as many weight gradients as there are ranks before it") {
    const auto problem = split_chains();
    const Replayer replayer(problem);
    const auto order = zb_h1_order(Flat(replayer));
    REQUIRE(order.why_not.empty());
    Schedule schedule;
    for (const auto& tasks : order.ranks) {
        schedule.order.emplace_back();
        for (const std::uint32_t task : tasks) schedule.order.back().push_back(TaskId{task});
    }
    // The bubble is (P - 1) (F + I - W) = 2 of 11.
    CHECK(picture(problem, schedule) == std::vector<std::string>{"F0 F1 F2 .. .. I0 W0 I1 W1 I2 W2",
                                                                 ".. F0 F1 .. I0 F2 I1 W0 I2 W1 W2",
                                                                 ".. .. F0 I0 F1 I1 F2 I2 W0 W1 W2"});
}

TEST_CASE("orders with weight gradients do not apply where no backward is split") {
    const auto problem = chains(2, 2);
    const Replayer replayer(problem);
    CHECK(zb_h1_order(Flat(replayer)).why_not == "no backward is split into I and W");
    CHECK(zb_v_order(Flat(replayer)).why_not == "no backward is split into I and W");
}
