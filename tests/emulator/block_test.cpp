// Blocks against replaying every kernel, and replaying against a simulator that steps from event to event.
#include "pipeweaver/emulator/block.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emulator/block_store.hpp"
#include "tests/emulator/random_graph.hpp"

#include <doctest/doctest.h>

#include <array>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using namespace pipeweaver::emulator::testing;

namespace {

StreamState replayed(const OperatorGraph& graph, const StreamState& before) {
    std::vector<std::int64_t> ends;
    return replay(graph, before, ends);
}

// What a person would read off: launch after launch.
MemoryEffect memory_by_hand(const OperatorGraph& graph) {
    std::int64_t held = 0, most = 0;
    for (const Kernel& kernel : graph.kernels()) {
        held += kernel.acquire.count;
        most = std::max(most, held);
        held -= kernel.release.count;
    }
    return {Bytes{held}, Bytes{most}};
}

using Compose = Block (*)(const Block&, const Block&);

// Whether two graphs in a row are what their blocks composed by `compose` are, from this state on.
bool composes(const OperatorGraph& first, const OperatorGraph& second, const StreamState& before, Compose compose) {
    auto both = first;
    both.append(second);
    const Block composed = compose(block_of(first), block_of(second));
    return composed.times(before) == replayed(both, before) && composed == block_of(both) &&
           composed.memory == memory_by_hand(both);
}

Block properly(const Block& first, const Block& second) { return first.then(second); }

// How many of 200 random pairs of graphs a composition gets right.
int right(Compose compose) {
    int count = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Random random(seed, 7);
        const auto first = random_graph(random, 2, 1, 1), second = random_graph(random, 2, 1, 1);
        if (composes(first, second, random_state(random, 3), compose)) ++count;
    }
    return count;
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
    CHECK(memory_of(graph) == MemoryEffect{Bytes{0}, Bytes{12}});
    CHECK(block_of(graph).duration() == Duration{15});
}

TEST_CASE("a block is replaying every kernel, from any state") {
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        Random random(seed, 1);
        const auto streams = static_cast<std::uint32_t>(1 + random.below(4)),
                   inputs = static_cast<std::uint32_t>(random.below(4));
        const auto graph = random_graph(random, streams, inputs, static_cast<std::uint32_t>(random.below(4)));
        const auto before = random_state(random, streams + inputs);
        const auto fails = [&](const OperatorGraph& one) {
            return block_of(one).times(before) != replayed(one, before) || block_of(one).memory != memory_by_hand(one);
        };
        if (fails(graph)) FAIL("seed ", seed, ", smallest:\n", picture(shrunk(graph, fails)));
    }
}

TEST_CASE("graphs in a row are their blocks' product, times and memory") {
    for (std::uint64_t seed = 0; seed < 1000; ++seed) {
        Random random(seed, 2);
        const auto streams = static_cast<std::uint32_t>(1 + random.below(3)),
                   joints = static_cast<std::uint32_t>(1 + random.below(3));
        const auto first = random_graph(random, streams, 2, joints), second = random_graph(random, streams, joints, 1);
        const auto before = random_state(random, streams + 2);
        const auto fails = [&](const OperatorGraph& one) { return !composes(one, second, before, properly); };
        if (fails(first))
            FAIL("seed ", seed, ", smallest:\n", picture(shrunk(first, fails)), "then\n", picture(second));
    }
}

TEST_CASE("n equal blocks in a row are one squared and squared again") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Random random(seed, 3);
        const auto graph = random_graph(random, 3, 2, 2, 6);
        const auto n = 1 + random.below(20);
        auto row = graph;
        for (std::uint64_t i = 1; i < n; ++i) row.append(graph);
        CAPTURE(seed);
        CHECK(block_of(graph).repeated(n) == block_of(row));
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

TEST_CASE("a wrong rule of composition is caught") {
    CHECK(right(properly) == 200);
    CHECK(right([](const Block& a, const Block& b) {  // durations added up, as if nothing overlapped
              auto sum = a.then(b);
              for (std::size_t i = 0; i < sum.times.rows(); ++i)
                  for (std::size_t j = 0; j < sum.times.columns(); ++j)
                      if (sum.times.at(i, j) != MaxPlusMatrix::never)
                          sum.times.at(i, j) = (a.duration() + b.duration()).count();
              return sum;
          }) < 20);
    CHECK(right([](const Block& a, const Block& b) {  // the wrong way round
              return b.then(a);
          }) < 20);
    CHECK(right([](const Block& a, const Block& b) {  // the later peak forgets what is held already
              auto sum = a.then(b);
              sum.memory.peak = std::max(a.memory.peak, b.memory.peak);
              return sum;
          }) < 200);
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

TEST_CASE("times and bytes that do not fit are an error, not a wrap") {
    OperatorGraph graph(1, 0);
    graph.launch(0, Duration{INT64_MAX / 2}, {}, Bytes{INT64_MAX / 2});
    graph.launch(0, Duration{INT64_MAX / 2}, {}, Bytes{INT64_MAX / 2});
    const auto block = block_of(graph);
    std::vector<std::int64_t> ends;

    CHECK_THROWS_AS(static_cast<void>(block.then(block)), Error);
    CHECK_THROWS_AS(static_cast<void>(block.repeated(4)), Error);
    graph.launch(0, Duration{10}, {}, Bytes{10});
    CHECK_THROWS_AS(static_cast<void>(block_of(graph)), Error);
    CHECK_THROWS_AS(static_cast<void>(memory_of(graph)), Error);
    CHECK_THROWS_AS(static_cast<void>(replay(graph, StreamState{0}, ends)), Error);
}

TEST_CASE("the store gives the graph's own block, once evaluated, and equal graphs share it") {
    BlockStore store;
    Random random(1), again(1), other(2);
    const auto graph = random_graph(random, 2, 1, 1), same = random_graph(again, 2, 1, 1),
               unlike = random_graph(other, 2, 1, 1);

    const auto block = store.get(graph);
    CHECK(*block == block_of(graph));
    CHECK(store.get(same) == block);
    CHECK(*store.get(unlike) == block_of(unlike));
    CHECK(store.statistics().hits == 1);
    CHECK(store.statistics().misses == 2);
    CHECK(store.statistics().blocks == 2);
}

TEST_CASE("graphs that differ in one thing only have blocks of their own") {
    BlockStore store;
    const auto graph = [](std::uint32_t stream, std::int64_t ns, std::int64_t bytes, bool waits) {
        OperatorGraph one(2, 1);
        const auto first = one.launch(0, Duration{5}, {Signal::input(0)});
        one.launch(stream, Duration{ns}, waits ? std::vector{first} : std::vector<Signal>{}, Bytes{bytes});
        return one;
    };
    for (const auto& one : {graph(0, 1, 1, true), graph(1, 1, 1, true), graph(0, 2, 1, true), graph(0, 1, 2, true),
                            graph(1, 1, 1, false)})
        CHECK(*store.get(one) == block_of(one));
    CHECK(store.statistics().misses == 5);
}

TEST_CASE("a small store forgets, stays within its size and answers all the same, from many threads") {
    constexpr std::size_t capacity = 64 * 1024;
    BlockStore store(capacity);
    constexpr std::size_t jobs = 4000;
    std::vector<char> right(jobs, 0);
    on_threads(4)(jobs, [&](std::size_t job) {
        Random random(job % 500);
        const auto graph = random_graph(random, 2, 1, 1);
        right[job] = *store.get(graph) == block_of(graph) ? 1 : 0;
    });
    CHECK(std::count(right.begin(), right.end(), 1) == jobs);
    const auto statistics = store.statistics();
    CHECK(statistics.hits + statistics.misses == jobs);
    CHECK(statistics.evictions > 0);
    CHECK(statistics.bytes <= capacity);
}
