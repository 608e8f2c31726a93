// Lists of operators on the streams of a GPU, worked by hand: what runs beside what, and what the next list waits for.
#include "emulator/pricing/pass_graph.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::emulator;

namespace {

Operator on(Stream stream, std::vector<std::uint32_t> after = {}) {
    return {.name = "operator", .query = {}, .stream = stream, .after = std::move(after)};
}

ListGraph listed(const std::vector<Operator>& operators, const std::vector<Duration>& durations, Duration launch = {}) {
    Recipe recipe;
    recipe.launch = launch;
    return list_graph(operators, durations, recipe);
}

struct Outputs {
    std::int64_t end, front_end;
    friend bool operator==(const Outputs&, const Outputs&) = default;
};

// Where the list in front has ended at `front_end` and began at `front_begin`, all streams being free.
Outputs after(const ListGraph& list, std::int64_t front_end, std::int64_t front_begin) {
    StreamState before(streams + 2, 0);
    before[streams] = front_end;
    before[streams + 1] = front_begin;
    std::vector<std::int64_t> ends;
    const auto state = replay(list.graph, before, ends);
    return {state[streams], state[streams + 1]};
}

PricedOperators priced(const std::vector<Operator>& operators, const std::vector<Duration>& durations) {
    PricedOperators list;
    list.operators = operators;
    list.duration = durations;
    return list;
}

}  // namespace

TEST_CASE("copies and what replicas exchange run on beside the next list, which waits for all else") {
    // 10 of compute; behind it 30 on the other stream, beside 5 more of compute.
    const auto ends_at = [](Stream stream) {
        return after(listed({on(Stream::compute), on(stream, {0}), on(Stream::compute, {0})},
                            {Duration{10}, Duration{30}, Duration{5}}),
                     0, 0)
            .end;
    };
    CHECK(ends_at(Stream::copy) == 15);
    CHECK(ends_at(Stream::data) == 15);
    CHECK(ends_at(Stream::tensor) == 40);
    CHECK(ends_at(Stream::context) == 40);
}

TEST_CASE("what is fetched ahead begins with the list in front, and compute waits for both") {
    for (const Stream stream : {Stream::copy, Stream::data}) {
        const auto fetched = listed({on(stream), on(Stream::compute)}, {Duration{7}, Duration{10}});
        CHECK(after(fetched, 100, 20) == Outputs{110, 100});  // fetched 20-27, compute 100-110
        CHECK(after(fetched, 100, 95) == Outputs{112, 100});  // fetched 95-102, compute 102-112
    }
    const auto gathered = listed({on(Stream::tensor), on(Stream::compute)}, {Duration{7}, Duration{10}});
    CHECK(after(gathered, 100, 20) == Outputs{117, 100});
    // A copy that waits for something is none that is fetched ahead: compute 100-103, copy 103-110, compute 110-115.
    const auto later = listed({on(Stream::compute), on(Stream::copy, {0}), on(Stream::compute)},
                              {Duration{3}, Duration{7}, Duration{5}});
    CHECK(after(later, 100, 20) == Outputs{115, 100});
}

TEST_CASE("each kernel waits for its launch on the host, and a list that is all copies for what is in front") {
    // Launches end at 4 and 8: compute 4-14 and 14-16.
    const auto launched = listed({on(Stream::compute), on(Stream::compute)}, {Duration{10}, Duration{2}}, Duration{4});
    CHECK(after(launched, 0, 0).end == 16);
    CHECK(launched.graph.kernels().size() == 4);
    CHECK(launched.operator_of == std::vector<std::uint32_t>{0, 0, 1, 1});
    // Launches bind: 4-5, 8-9.
    CHECK(
        after(listed({on(Stream::compute), on(Stream::compute)}, {Duration{1}, Duration{1}}, Duration{4}), 0, 0).end ==
        9);
    CHECK(after(listed({on(Stream::copy)}, {Duration{50}}), 30, 10) == Outputs{30, 30});
}

TEST_CASE("what a pass takes is when its last kernel ends, and lists that copy are not the sum of their parts") {
    // Twice: compute 10, copy 4 beside compute 5. Copies 10-14 and 25-29; compute 0-15 and 15-30.
    const std::vector<Operator> list{on(Stream::compute), on(Stream::copy, {0}), on(Stream::compute, {0})};
    const std::vector<Duration> durations{Duration{10}, Duration{4}, Duration{5}};
    std::vector<PassPiece> pieces(1);
    pieces[0].times = 2;
    pieces[0].lists = {priced(list, durations)};
    PassCost cost;
    set_times(pass_graph(pieces, {}), cost);
    CHECK(cost.time == Duration{30});
    CHECK(cost.exposed == std::array<Duration, streams>{});
    CHECK_FALSE(is_closed(pieces, {}));

    // A copy of 20 in the last one ends at 45, of which compute has ended at 30.
    pieces[0].lists = {priced(list, {Duration{10}, Duration{20}, Duration{5}})};
    set_times(pass_graph(pieces, {}), cost);
    CHECK(cost.time == Duration{50});  // copies 10-30 and 30-50
    CHECK(cost.exposed[static_cast<std::size_t>(Stream::copy)] == Duration{20});

    pieces[0].lists = {priced({on(Stream::compute), on(Stream::compute)}, {Duration{10}, Duration{5}})};
    CHECK(is_closed(pieces, {}));
    pieces[0].lists = {priced({on(Stream::compute), on(Stream::data)}, {Duration{10}, Duration{5}})};
    CHECK_FALSE(is_closed(pieces, {}));
}

TEST_CASE("of a time without compute the first busy stream is what was waited for") {
    OperatorGraph graph(streams, 0);
    const auto number = [](Stream stream) { return static_cast<std::uint32_t>(stream); };
    const auto first = graph.launch(number(Stream::compute), Duration{10});
    graph.launch(number(Stream::tensor), Duration{4}, {first});                  // 10-14
    const auto copy = graph.launch(number(Stream::copy), Duration{9}, {first});  // 10-19
    graph.launch(number(Stream::compute), Duration{3}, {copy});                  // 19-22
    std::vector<std::int64_t> ends;
    static_cast<void>(replay(graph, StreamState(streams, 0), ends));
    const auto exposed = exposed_between(graph, ends, 0, 22);
    CHECK(exposed[number(Stream::tensor)] == Duration{4});
    CHECK(exposed[number(Stream::copy)] == Duration{5});
    CHECK(exposed[number(Stream::compute)] == Duration{0});
    CHECK(exposed_between(graph, ends, 12, 20)[number(Stream::tensor)] == Duration{2});
    CHECK(exposed_between(graph, ends, 12, 20)[number(Stream::copy)] == Duration{5});
}
