// Replaying kernels against a simulator that steps from event to event, and against numbers worked by hand.
#include "emulator/pricing/operator_graph.hpp"

#include "pipeweaver/base/error.hpp"
#include "tests/emulator/random_graph.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using namespace pipeweaver::emulator::random_graphs;

namespace {

StreamState replayed(const OperatorGraph& graph, const StreamState& before) {
    std::vector<std::int64_t> ends;
    return replay(graph, before, ends);
}

std::string picture(const OperatorGraph& graph) {
    std::string text;
    for (std::size_t i = 0; i < graph.kernels().size(); ++i) {
        const Kernel& k = graph.kernels()[i];
        text += std::to_string(i) + ": stream " + std::to_string(k.stream) + ", " + std::to_string(k.duration.count()) +
                " ns, waits";
        for (const Signal wait : graph.waits(i))
            text += (wait.is_input() ? " input " : " ") + std::to_string(wait.index());
        text += '\n';
    }
    return text;
}

}  // namespace

TEST_CASE("two streams overlap where nothing waits, and meet where something does") {
    OperatorGraph graph(2, 1);
    const auto gemm = graph.launch(0, Duration{10}, {Signal::input(0)}, Bytes{8});
    const auto gather = graph.launch(1, Duration{7}, {}, Bytes{4}, Bytes{4});
    const auto next = graph.launch(0, Duration{5}, {gather});
    graph.launch(1, Duration{3}, {gemm}, {}, Bytes{8});
    graph.add_output(next);

    // The input comes at 2: GEMM 2-12, gather 0-7, next 12-17, last 12-15.
    CHECK(replayed(graph, {0, 0, 2}) == StreamState{17, 15, 17});
    // The gather's stream is free at 20: gather 20-27, next 27-32, last 27-30.
    CHECK(replayed(graph, {0, 20, 2}) == StreamState{32, 30, 32});
}

TEST_CASE("a graph appended begins in the state that the one before it leaves") {
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        Random random(seed, 2);
        const auto streams = static_cast<std::uint32_t>(1 + random.below(3)),
                   joints = static_cast<std::uint32_t>(1 + random.below(3));
        const auto first = random_graph(random, streams, 2, joints), second = random_graph(random, streams, joints, 1);
        const auto before = random_state(random, streams + 2);
        const auto fails = [&](const OperatorGraph& one) {
            auto both = one;
            both.append(second);
            return replayed(both, before) != replayed(second, replayed(one, before));
        };
        if (fails(first))
            FAIL("seed ", seed, ", smallest:\n", picture(shrunk(first, fails)), "then\n", picture(second));
    }
}

TEST_CASE("replaying is what a simulator finds that steps from event to event") {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        Random random(seed, 4);
        const auto streams = static_cast<std::uint32_t>(1 + random.below(5)),
                   inputs = static_cast<std::uint32_t>(random.below(3));
        const auto graph = random_graph(random, streams, inputs, 1, 40);
        const auto before = random_state(random, streams + inputs);
        const auto fails = [&](const OperatorGraph& one) { return simulate(one, before) != replayed(one, before); };
        if (fails(graph)) FAIL("seed ", seed, ", smallest:\n", picture(shrunk(graph, fails)));
    }
}

TEST_CASE("a failing graph is shrunk to what makes it fail") {
    Random random(5);
    const auto graph = random_graph(random, 3, 1, 1, 40);
    const auto has_long_one = [](const OperatorGraph& one) {
        const auto kernels = one.kernels();
        return std::any_of(kernels.begin(), kernels.end(), [](const Kernel& k) { return k.duration > Duration{90}; });
    };
    REQUIRE(has_long_one(graph));

    const auto small = shrunk(graph, has_long_one);
    CHECK(small.kernels().size() == 1);
    CHECK(has_long_one(small));
}

TEST_CASE("times that do not fit are an error, not a wrap") {
    OperatorGraph graph(1, 0);
    graph.launch(0, Duration{INT64_MAX / 2});
    graph.launch(0, Duration{INT64_MAX / 2});
    std::vector<std::int64_t> ends;

    CHECK_NOTHROW(static_cast<void>(replay(graph, StreamState{0}, ends)));
    graph.launch(0, Duration{10});
    CHECK_THROWS_AS(static_cast<void>(replay(graph, StreamState{0}, ends)), Error);
}
