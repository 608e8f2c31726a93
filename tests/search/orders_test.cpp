#include "search/policies/orders.hpp"

#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

std::vector<std::string> rows(const Problem& problem, const Order& order) {
    REQUIRE(order.why_not.empty());
    Schedule schedule;
    for (const auto& tasks : order.ranks) {
        schedule.order.emplace_back();
        for (const std::uint32_t task : tasks) schedule.order.back().push_back(TaskId{task});
    }
    return picture(problem, schedule);
}

}  // namespace

TEST_CASE("gpipe runs all forwards and then all backwards") {
    const auto problem = chains(2, 3);
    const Replayer replayer(problem);
    CHECK(rows(problem, gpipe_order(Flat(replayer))) ==
          std::vector<std::string>{"F0 F1 F2 .. .. B0 B1 B2", ".. F0 F1 F2 B0 B1 B2"});
}

TEST_CASE("1f1b has run a forward for each rank after it when it alternates") {
    const auto problem = chains(2, 3);
    const Replayer replayer(problem);
    CHECK(rows(problem, one_forward_one_backward_order(Flat(replayer))) ==
          std::vector<std::string>{"F0 F1 .. B0 F2 B1 .. B2", ".. F0 B0 F1 B1 F2 B2"});
}

TEST_CASE("1f1b goes along the chain, whatever numbers its stages have") {
    auto problem = chains(3, 4);
    const Replayer replayer(problem);
    const auto usual = rows(problem, one_forward_one_backward_order(Flat(replayer)));
    const std::vector<std::int64_t> number{1, 2, 0};
    for (Task& task : problem.tasks) task.stage = number[index(task.rank)];
    const Replayer renumbered(problem);
    CHECK(rows(problem, one_forward_one_backward_order(Flat(renumbered))) == usual);
}

TEST_CASE("interleaved takes as many microbatches through each chunk as there are ranks") {
    // Two stages on each of two ranks: a microbatch passes rank 0, 1, 0, 1 and back.
    auto problem = chains(4, 2);
    problem.ranks.resize(2);
    for (auto& task : problem.tasks) task.rank = RankId{static_cast<std::uint32_t>(*task.stage) % 2};
    const Replayer replayer(problem);
    const auto order = interleaved_order(Flat(replayer));
    REQUIRE(order.why_not.empty());
    // Rank 0 warms up with min(2 * 1 + 1 * 2, 4) forwards, both of its chunks for both microbatches.
    CHECK(order.ranks[0] == std::vector<std::uint32_t>{0, 8, 2, 10, 5, 13, 7, 15});
    // Rank 1 with min(0 + 1 * 2, 4), then one forward, one backward.
    CHECK(order.ranks[1] == std::vector<std::uint32_t>{1, 9, 3, 4, 11, 12, 6, 14});
}

TEST_CASE("orders for one stage on each rank say on which rank there are more") {
    auto problem = chains(2, 1);
    for (auto& task : problem.tasks) task.rank = RankId{0};
    const Replayer replayer(problem);
    CHECK(one_forward_one_backward_order(Flat(replayer)).why_not == "rank 0 has tasks of more than one stage");
}

TEST_CASE("what is around a chain runs first on its rank, or last where it comes late") {
    auto problem = chains(2, 2);
    for (const std::uint32_t rank : {0U, 1U}) {
        Task first = task_of(rank, TaskKind::forward, 2), last = task_of(rank, TaskKind::backward, 1);
        for (Task* task : {&first, &last}) {
            task->stage.reset();
            task->microbatch.reset();
            task->module = "encoder";
            task->label = task == &first ? "EF" : "EB";
        }
        const auto number = static_cast<std::uint32_t>(problem.tasks.size());
        problem.tasks.push_back(first);
        problem.tasks.push_back(last);
        for (const std::uint32_t microbatch : {0U, 4U}) {
            problem.edges.push_back(edge_of(number, microbatch));
            problem.edges.push_back(edge_of(microbatch + 3, number + 1));
        }
    }
    const Replayer replayer(problem);
    CHECK(rows(problem, one_forward_one_backward_order(Flat(replayer))) ==
          std::vector<std::string>{"EF EF F0 F1 .. B0 .. B1 EB", "EF EF .. F0 B0 F1 B1 .. EB"});
    problem.tasks.back().module.clear();
    CHECK(one_forward_one_backward_order(Flat(Replayer(problem))).why_not.find("has no stage") != std::string::npos);
}
