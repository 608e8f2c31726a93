// Whole schedules, kernel by kernel, against tasks as long as their kernels take alone.
#include "emulator/emulate/expand.hpp"

#include "tests/emulator/random_graph.hpp"
#include "tests/support/random_problem.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;
using namespace pipeweaver::emulator::random_graphs;

namespace {

struct Case {
    Problem problem;
    Schedule schedule;
    std::vector<OperatorGraph> graphs;  // per task
};

std::vector<const OperatorGraph*> pointers(const std::vector<OperatorGraph>& graphs) {
    std::vector<const OperatorGraph*> result;
    result.reserve(graphs.size());
    for (const auto& graph : graphs) result.push_back(&graph);
    return result;
}

// Until all streams are free again and all outputs there.
Duration duration_alone(const OperatorGraph& graph) {
    std::vector<std::int64_t> ends;
    const auto after = replay(graph, StreamState(graph.streams() + graph.inputs(), 0), ends);
    return Duration{*std::max_element(after.begin(), after.end())};
}

struct Memory {
    Bytes held;  // when all have been launched
    Bytes most;  // at any launch
};

// Launch after launch.
Memory memory_of(const OperatorGraph& graph) {
    Memory memory;
    for (const Kernel& kernel : graph.kernels()) {
        memory.held += kernel.acquire;
        memory.most = std::max(memory.most, memory.held);
        memory.held -= kernel.release;
    }
    return memory;
}

// A random schedule whose tasks are random graphs on two streams, and last and hold what these do alone.
Case random_case(std::uint64_t seed) {
    const auto instance = pipeweaver::testing::random_instance(seed);
    const auto file = parse_problem("problem", instance.problem);
    Case result{file.problem, parse_schedule("solution", instance.solution, file), {}};
    result.problem.pairs.clear();
    result.schedule.mode.clear();
    Random random(seed, 9);
    for (Rank& rank : result.problem.ranks) rank.capacity.reset();
    for (Task& task : result.problem.tasks) {
        auto graph = random_graph(random, 2, 1, 1);
        // A task lasts at least a nanosecond, and gives back no more than was taken.
        graph.launch(0, Duration{1}, {}, Bytes{std::max<std::int64_t>(0, -memory_of(graph).held.count)});
        const auto [held, most] = memory_of(graph);
        task.duration = duration_alone(graph);
        task.acquire = most;
        task.release = most - held;
        result.graphs.push_back(std::move(graph));
    }
    return result;
}

}  // namespace

TEST_CASE("a schedule kernel by kernel takes as long as its tasks as wholes, to the nanosecond") {
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        const auto [problem, schedule, graphs] = random_case(seed);
        const Replayer replayer(problem);
        const auto tasks = replayer.replay(schedule);
        REQUIRE(tasks.makespan.count() > 0);
        const auto expanded = expand(replayer, schedule, pointers(graphs), 2);

        CAPTURE(seed);
        REQUIRE(makespan_of(expanded, problem) == tasks.makespan);
        std::vector<std::int64_t> ends;
        const auto state = replay(expanded.graph, StreamState(expanded.graph.streams() + 1, 0), ends);
        REQUIRE(state == simulate(expanded.graph, StreamState(expanded.graph.streams() + 1, 0)));
        for (std::size_t task = 0; task < problem.tasks.size(); ++task) {
            std::int64_t end = 0;
            for (std::uint32_t k = expanded.first_end[task]; k < expanded.first_end[task + 1]; ++k)
                end = std::max(end, ends[expanded.end_kernels[k]]);
            REQUIRE(end == (tasks.start[task] + problem.tasks[task].duration).count());
        }
    }
}

TEST_CASE("a rank's memory kernel by kernel peaks where its tasks as wholes do, to the byte") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        const auto [problem, schedule, graphs] = random_case(seed);
        const auto tasks = Replayer(problem).replay(schedule);
        for (std::size_t rank = 0; rank < problem.ranks.size(); ++rank) {
            std::int64_t held = problem.ranks[rank].base.count, most = held;
            for (const TaskId task : schedule.order[rank])
                for (const Kernel& kernel : graphs[index(task)].kernels()) {
                    held += kernel.acquire.count;
                    most = std::max(most, held);
                    held -= kernel.release.count;
                }
            CAPTURE(seed);
            REQUIRE(tasks.peak[rank] == Bytes{most});
        }
    }
}
