#include "search/construct/dispatch.hpp"

#include "tests/search/by_hand.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

using Tasks = std::vector<std::uint32_t>;

// One rank with two forwards, 0 and 1, and two backwards, 2 and 3, each 1 ns; nothing waits for anything.
struct FourTasks {
    FourTasks() {
        problem.name = "four";
        problem.ranks.resize(1);
        for (const TaskKind kind : {TaskKind::forward, TaskKind::forward, TaskKind::backward, TaskKind::backward})
            problem.tasks.push_back(task_of(0, kind, 1, static_cast<std::int64_t>(problem.tasks.size())));
    }

    Tasks run(Choice choice, const std::vector<std::int64_t>& release = {}) const {
        const Replayer replayer(problem);
        const Flat flat(replayer);
        Dispatcher dispatcher(flat);
        REQUIRE_FALSE(dispatcher.prepare(flat.costs({})));
        dispatcher.run(choice, Tasks{0, 1, 2, 3}, release);
        return dispatcher.sequence();
    }

    Problem problem;
};

}  // namespace

TEST_CASE("the dual queue alternates between forwards and backwards that could both start") {
    CHECK(FourTasks().run(Choice::dual_queue) == Tasks{0, 2, 1, 3});
}

TEST_CASE("a list schedule goes by priority alone, backward first by kind first") {
    CHECK(FourTasks().run(Choice::list) == Tasks{0, 1, 2, 3});
    CHECK(FourTasks().run(Choice::backward_first) == Tasks{2, 3, 0, 1});
}

TEST_CASE("with moments of release no task starts earlier, and ranks take what they can meanwhile") {
    CHECK(FourTasks().run(Choice::list, {2, 0, 0, 0}) == Tasks{1, 2, 0, 3});
}

TEST_CASE("forwards in order wait for the one before them while backwards run") {
    CHECK(FourTasks().run(Choice::in_order, {2, 0, 0, 0}) == Tasks{2, 3, 0, 1});
}

TEST_CASE("a forward that memory has no room for waits until a backward gives some back") {
    auto problem = chains(2, 2);
    for (auto& rank : problem.ranks) rank.capacity = Bytes{1};
    const Replayer replayer(problem);
    const Flat flat(replayer);
    Dispatcher dispatcher(flat);
    REQUIRE_FALSE(dispatcher.prepare(flat.costs({})));
    dispatcher.run(Choice::list, flat.place);
    CHECK(dispatcher.makespan() == 8);  // the second forward on rank 0 runs after the first backward there
    CHECK(picture(problem, as_schedule(flat, dispatcher.sequence(), {})) ==
          std::vector<std::string>{"F0 .. .. B0 F1 .. .. B1", ".. F0 B0 .. .. F1 B1"});
}

TEST_CASE("by keys the ready task with the smallest key goes first, whatever its time") {
    const auto problem = chains(2, 2);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    Dispatcher dispatcher(flat);
    REQUIRE_FALSE(dispatcher.prepare(flat.costs({})));
    const std::vector<std::int64_t> second_first{4, 5, 6, 7, 0, 1, 2, 3};
    dispatcher.run_by_key(second_first);
    CHECK(dispatcher.sequence() == Tasks{4, 5, 6, 7, 0, 1, 2, 3});
    CHECK(dispatcher.makespan() == 8);
}

TEST_CASE("looking ahead, nothing long is begun when something urgent is about to arrive") {
    // Rank 0: 0, long and ready; 2, short, after 1 on rank 1.
    Problem problem;
    problem.name = "urgent";
    problem.ranks.resize(2);
    problem.tasks = {task_of(0, TaskKind::forward, 4, 0), task_of(1, TaskKind::forward, 1, 1),
                     task_of(0, TaskKind::forward, 1, 1)};
    problem.edges = {edge_of(1, 2)};
    const Replayer replayer(problem);
    const Flat flat(replayer);
    Dispatcher dispatcher(flat);
    REQUIRE_FALSE(dispatcher.prepare(flat.costs({})));
    const auto rows = [&](Choice choice) {
        dispatcher.run(choice, std::vector<std::uint32_t>{2, 1, 0});
        return picture(problem, as_schedule(flat, dispatcher.sequence(), {}));
    };
    CHECK(rows(Choice::list) == std::vector<std::string>{"F0 F0 F0 F0 F1", "F1"});
    CHECK(rows(Choice::look_ahead) == std::vector<std::string>{".. F1 F0 F0 F0 F0", "F1"});
}

TEST_CASE("with a window of one, a microbatch begins when the one before it has ended on all ranks") {
    const auto problem = chains(2, 2);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    Dispatcher dispatcher(flat);
    REQUIRE_FALSE(dispatcher.prepare(flat.costs({})));
    const auto rows = [&](std::uint32_t window) {
        dispatcher.run(Choice::list, flat.place, {}, window);
        return picture(problem, as_schedule(flat, dispatcher.sequence(), {}));
    };
    CHECK(rows(0) == std::vector<std::string>{"F0 F1 .. B0 .. B1", ".. F0 B0 F1 B1"});
    CHECK(rows(1) == std::vector<std::string>{"F0 .. .. B0 F1 .. .. B1", ".. F0 B0 .. .. F1 B1"});
    CHECK(rows(2) == rows(0));
}
