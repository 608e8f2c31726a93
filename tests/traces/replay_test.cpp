// Recorded steps replayed: hand-worked times of the example, and slack against brute force.
#include "pipeweaver/traces/replay.hpp"

#include "pipeweaver/traces/report.hpp"
#include "tests/traces/example.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::traces;
using pipeweaver::testing::example_step;

namespace {

std::int64_t with(const Graph& graph, const std::string& factors) {
    Changes changes;
    changes.factors = factors_of(factors, graph.places());
    return replay(graph, changes).span_ns;
}

std::int64_t of(const CriticalPath& path, Kind kind) { return path.of_kind[static_cast<std::size_t>(kind)]; }

}  // namespace

TEST_CASE("the example is replayed to the nanosecond, by the clock of its first rank") {
    const Graph graph = example_step();

    CHECK(graph.span_ns == 795'000);  // 2 * 270 + 255 us
    const Replayed replayed = replay(graph);
    CHECK(replayed.span_ns == 795'000);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        CHECK(replayed.start_ns[n] == graph.nodes[n].start_ns);
        CHECK(replayed.end_ns[n] == graph.nodes[n].start_ns + graph.nodes[n].duration_ns);
    }
    REQUIRE(graph.ranks.size() == 2);
    CHECK(graph.ranks[1].offset_ns == -500'000);
    CHECK(graph.ranks[1].uncertainty_ns == 0);
    CHECK(graph.meetings == 3);
    CHECK(graph.unmatched == 0);
}

TEST_CASE("the critical path goes by the rank that comes last, and adds up to the step") {
    const Graph graph = example_step();
    const auto path = critical_path(graph, replay(graph));

    // Three times rank 1's gemm, add, gelu and the all-reduce from its coming; launches of the gemm; gaps of 2 us
    // between kernels; 5 us of each synchronisation and 15 us between the three.
    CHECK(of(path, Kind::gemm) == 3 * 140'000);
    CHECK(of(path, Kind::memory) == 3 * 40'000);
    CHECK(of(path, Kind::all_reduce) == 3 * 54'000);
    CHECK(of(path, Kind::launch) == 3 * 10'000);
    CHECK(of(path, Kind::host) == 3 * 5'000 + 2 * 15'000);
    CHECK(of(path, Kind::idle) == 3 * 3 * 2'000);
    std::int64_t sum = 0;
    for (const std::int64_t ns : path.of_kind) sum += ns;
    CHECK(sum == 795'000);
    CHECK(path.of_rank == std::vector<std::int64_t>{0, 3 * 180'000});
    CHECK(path.kept_ns == 3 * 3 * 2'000);  // those gaps alone: all launches take as long as usual
}

TEST_CASE("factors change what depends on them alone") {
    const Graph graph = example_step();

    CHECK(with(graph, "gemm=1") == 795'000);
    CHECK(with(graph, "nccl=0.5") == 795'000 - 3 * 27'000);
    CHECK(with(graph, "launch=0") == 795'000 - 3 * 10'000);
    CHECK(with(graph, "rank1=0.9") == 795'000 - 3 * 18'000);  // 180 us of work
    CHECK(with(graph, "rank0=0.5") == 795'000);               // nobody waits for rank 0
    // Rank 0 then comes 30 us after rank 1: its 140 us of work become 210.
    CHECK(with(graph, "rank0=1.5") == 795'000 + 3 * 30'000);
    // Rank 0 then comes after 106 us, rank 1 after 126 and no longer 196.
    CHECK(with(graph, "gemm=0.5") == 795'000 - 3 * 70'000);
}

TEST_CASE("nothing ends later while no node takes more than its slack") {
    const Graph graph = example_step();
    const Replayed replayed = replay(graph);
    const auto slack = slack_of(graph, replayed);
    bool any = false;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        CAPTURE(n);
        REQUIRE(slack[n] >= 0);
        Changes changes;
        changes.longer_ns.assign(graph.nodes.size(), 0);
        changes.longer_ns[n] = slack[n];
        CHECK(replay(graph, changes).span_ns == replayed.span_ns);
        ++changes.longer_ns[n];
        CHECK(replay(graph, changes).span_ns == replayed.span_ns + 1);
        any = any || slack[n] > 0;
    }
    CHECK(any);
}

TEST_CASE("fused neighbours save their gap, and the launches that the host then does not make") {
    const auto found = findings_of(example_step(), "", nullptr);

    REQUIRE(found.fusions.size() == 1);
    const Fusion& one = found.fusions.front();
    CHECK(found.graph.names[one.first] == "triton_poi_fused_add_0");
    CHECK(found.graph.names[one.second] == "triton_poi_fused_gelu_1");
    CHECK(one.count == 6);
    CHECK(one.span_ns == 795'000 - 3 * 2'000);
}

TEST_CASE("who comes last is told, and what could take longer") {
    const auto found = findings_of(example_step(), "nccl=0.5", nullptr);

    CHECK(found.graph.ranks[0].waits_ns == 3 * 40'000);
    CHECK(found.graph.ranks[0].last == 0);
    CHECK(found.graph.ranks[1].last == 3);
    CHECK(found.graph.ranks[1].kept_waiting_ns == 3 * 40'000);
    CHECK(found.work_ns == 3 * (140'000 + 180'000));
    CHECK(found.loose_ns == 3 * 140'000);
    REQUIRE(found.what_if.has_value());
    CHECK(found.what_if->span_ns == 714'000);
    const std::string text = findings_text(found);
    CHECK(text.find("slow: rank 1 comes last to 3 of 3 collectives and keeps the others waiting for 120.0 us\n") !=
          std::string::npos);
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
        CHECK(end - begin <= 100);
}
