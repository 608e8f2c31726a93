// The trace of a step: what it shows beside the tasks.
#include "emit/targets/trace.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <map>

using namespace pipeweaver;
using namespace pipeweaver::schedule;

namespace {

using namespace std::chrono_literals;

// Rank 0 sends twice to rank 1, which takes both when the second has arrived; the first transfer takes longer than the
// second task, so they overlap. A third tensor takes no time.
Problem two_ranks() {
    Problem problem;
    problem.name = "two";
    problem.ranks.resize(2);
    problem.ranks[0].tail = 5us;
    const auto task = [&](std::uint32_t rank, const char* label) {
        Task one;
        one.rank = RankId{rank};
        one.duration = 10us;
        one.label = label;
        problem.tasks.push_back(one);
    };
    task(0, "a");
    task(0, "b");
    task(1, "c");
    task(1, "d");
    problem.edges = {{TaskId{0}, TaskId{2}, 25us}, {TaskId{1}, TaskId{2}, 8us}, {TaskId{1}, TaskId{3}, 0us}};
    return problem;
}

nlohmann::json events_of(const emit::TraceKnown& known) {
    const Problem problem = two_ranks();
    const Replayer replayer(problem);
    const Schedule schedule{{{TaskId{0}, TaskId{1}}, {TaskId{2}, TaskId{3}}}, {}};
    return nlohmann::json::parse(
        emit::chrome_trace(replayer, schedule, replayer.replay(schedule), known))["traceEvents"];
}

}  // namespace

TEST_CASE("transfers that overlap are on tracks of their own, and arrows lead through them") {
    const auto events = events_of({});
    std::map<int, std::vector<std::pair<double, double>>> tracks;  // of rank 1: start and end
    std::map<int, std::string> arrows;
    for (const auto& event : events) {
        if (event["ph"] == "X" && event["pid"] == 1)
            tracks[event["tid"]].emplace_back(event["ts"], event["ts"].get<double>() + event["dur"].get<double>());
        const std::string phase = event["ph"];
        if (phase == "s" || phase == "t" || phase == "f") arrows[event["id"]] += phase;
    }
    using Spans = std::vector<std::pair<double, double>>;
    CHECK(tracks[0] == Spans{{35, 45}, {45, 55}});
    CHECK(tracks[2] == Spans{{10, 35}});
    CHECK(tracks[3] == Spans{{20, 28}});
    CHECK(arrows == std::map<int, std::string>{{0, "stf"}, {1, "stf"}, {2, "sf"}});
}

TEST_CASE("gradients follow a rank's last task, the optimizer the last rank's, and processes say their replica") {
    const auto events = events_of({.replica = 7, .optimizer = 3us, .recompute = {"full", "", "", "none"}});
    std::vector<std::string> names, after;
    std::string again;
    double last = 0;
    for (const auto& event : events) {
        if (event["name"] == "process_name") names.push_back(event["args"]["name"]);
        if (event["ph"] != "X") continue;
        last = std::max(last, event["ts"].get<double>() + event["dur"].get<double>());
        if (event["tid"] == 1)
            after.push_back(event["name"].get<std::string>() + " " + event["ts"].dump() + " " + event["dur"].dump());
        if (event["args"].contains("recompute")) again += event["args"]["recompute"].get<std::string>() + " ";
    }
    CHECK(names == std::vector<std::string>{"replica 7, rank 0", "replica 7, rank 1"});
    CHECK(after == std::vector<std::string>{"gradient reduction 20.0 5.0", "optimizer 55.0 3.0", "optimizer 55.0 3.0"});
    CHECK(again == "full none ");
    CHECK(last == 58);
    CHECK(events_of({})[0]["args"]["name"] == "rank 0");
}
