// What the report's pictures show beside tasks: gradient reduction, optimizer and transfers.
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/report.hpp"
#include "tests/support/parts_of_text.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using emit::report_parts::on_axis;
using testing::between;
using testing::count;
using testing::planned;

namespace {

Request request(std::int64_t dp) {
    Request request = testing::small_request(dp, {5, 0, 2, 9, 1, 4});
    if (dp > 1)
        testing::change_setup(request, [](emulator::Setup& setup) { setup.cluster = testing::small_cluster(16); });
    request.job.max_rounds = 3;
    return request;
}

std::string picture(const std::string& page) {
    return between(page, "<figure class=\"schedule\" id=\"plan\">", "</figure>");
}

// Two ranks, `passes` forwards each, all of which cross.
schedule::Problem crossing_ranks(std::size_t passes) {
    schedule::Problem problem;
    problem.ranks.resize(2);
    for (std::uint32_t i = 0; i < 2 * passes; ++i)
        problem.tasks.push_back(
            {RankId{i % 2}, schedule::TaskKind::forward, Duration{100}, {}, {}, "", {}, {}, {}, ""});
    for (std::uint32_t i = 0; i < passes; ++i)
        problem.edges.push_back({TaskId{2 * i}, TaskId{2 * i + 1}, Duration{50}});
    return problem;
}

schedule::Schedule in_order_of(const schedule::Problem& problem) {
    schedule::Schedule schedule;
    schedule.order.resize(problem.ranks.size());
    for (std::uint32_t i = 0; i < problem.tasks.size(); ++i)
        schedule.order[index(problem.tasks[i].rank)].push_back(TaskId{i});
    return schedule;
}

}  // namespace

TEST_CASE("a rank's last task is followed by its gradient reduction, and all ranks by the optimizer") {
    const auto asked = request(2);
    const Plan plan = planned(asked);
    REQUIRE(plan.replicas.size() == 2);
    const auto page = emit::report(asked.job, asked.batch, plan);
    CHECK(page.find(fmt::format("data-horizon-ns=\"{}\"", plan.step.count())) != std::string::npos);

    const ReplicaPlan& slowest = plan.replicas[plan.slowest];
    const auto& problem = slowest.cut.step.problem;
    const auto costs = schedule::Replayer(problem).costs(slowest.found.schedule->mode);
    for (std::size_t r = 0; r < problem.ranks.size(); ++r) {
        CAPTURE(r);
        const auto last = index(slowest.found.schedule->order[r].back());
        const Duration end = slowest.found.replay.start[last] + costs[last].duration, tail = problem.ranks[r].tail;
        REQUIRE(tail > Duration{0});
        const auto from = on_axis(end, plan.step), to = on_axis(end + tail, plan.step);
        CHECK(count(picture(page), fmt::format("<rect class=\"tail c6\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"20\">",
                                               from, 24 * r + 2, to - from)) == 1);
    }
    const auto makespan = on_axis(plan.makespan, plan.step);
    CHECK(count(picture(page), fmt::format("<rect class=\"optimizer c7\" x=\"{}\" y=\"2\" width=\"{}\"", makespan,
                                           1'000'000 - makespan)) == 1);
    const auto legend = between(page, "<ul class=\"legend\">", "</ul>");
    for (const char* name :
         {"gradient reduction after a rank&#39;s last task", "optimizer", "transfer to another rank"})
        CHECK(count(legend, name) == 1);
}

TEST_CASE("what a schedule does not have is neither drawn nor in the legend") {
    const auto asked = request(1);
    Plan plan = planned(asked);
    plan.step = plan.makespan;
    for (auto& rank : plan.replicas.front().cut.step.problem.ranks) rank.tail = Duration{0};
    for (auto& edge : plan.replicas.front().cut.step.problem.edges) edge.lag = Duration{0};
    const auto page = emit::report(asked.job, asked.batch, plan);
    const auto legend = between(page, "<ul class=\"legend\">", "</ul>");
    for (const char* name : {"gradient reduction", "optimizer", "transfer"})
        CHECK(legend.find(name) == std::string::npos);
    for (const char* drawn : {"class=\"tail", "class=\"optimizer", "class=\"transfers"})
        CHECK(picture(page).find(drawn) == std::string::npos);
}

TEST_CASE("each transfer between ranks is drawn from the end of its task to its arrival") {
    const auto asked = request(1);
    const Plan plan = planned(asked);
    const auto page = emit::report(asked.job, asked.batch, plan);
    const auto& problem = plan.replicas.front().cut.step.problem;
    std::size_t crossing = 0;
    for (const auto& edge : problem.edges)
        if (problem.tasks[index(edge.from)].rank != problem.tasks[index(edge.to)].rank && edge.lag > Duration{0})
            ++crossing;
    REQUIRE(crossing > 0);
    const auto lines = between(picture(page), "<path class=\"line\" d=\"", "\"/>");
    CHECK(count(lines, "M") == crossing);
    CHECK(count(picture(page), "\nsends to rank ") > 0);

    const auto by_hand = crossing_ranks(1);
    const auto schedule = in_order_of(by_hand);
    const auto replay = schedule::replay(by_hand, schedule);
    const emit::report_parts::Drawn drawn{
        .id = "one", .heading = "", .problem = &by_hand, .schedule = &schedule, .replay = &replay};
    const auto sent =
        emit::report_parts::transfers(drawn, schedule::Replayer(by_hand).costs(schedule.mode), Duration{250});
    // Rank 0 is done at 100 of 250 ns, rank 1 begins at 150; their rows' middles are at 12 and 36 pixels.
    CHECK(sent.svg.find("d=\"M400000 12L600000 36\"") != std::string::npos);
    CHECK(sent.sent.front() == "sends to rank 1 in 50 ns");
    CHECK(sent.sent.back().empty());
}

TEST_CASE("transfers that are too many to be read wait for a closer look, and the page says so") {
    for (const auto& [passes, too_many] : {std::pair(100, false), std::pair(101, true)}) {
        const auto problem = crossing_ranks(static_cast<std::size_t>(passes));
        const auto schedule = in_order_of(problem);
        const auto replay = schedule::replay(problem, schedule);
        const emit::report_parts::Drawn drawn{
            .id = "one", .heading = "", .problem = &problem, .schedule = &schedule, .replay = &replay};
        const auto html = emit::report_parts::schedule_pictures({drawn}, replay.makespan);
        CHECK(count(html, "<g class=\"transfers crowded\" data-most=\"100\">") == (too_many ? 1 : 0));
        CHECK(count(html, "<g class=\"transfers\" data-most=\"100\">") == (too_many ? 0 : 1));
        CHECK(count(html, "at most 50 a rank are in view") == (too_many ? 1 : 0));
    }
}

TEST_CASE("a bar's hover text names the recomputation of its pass, whatever the plan's modes are") {
    const auto asked = request(1);
    Plan plan = planned(asked);
    plan.replicas.front().cut.partition.modes = {emulator::Recompute::selective, emulator::Recompute::blocks(2),
                                                 emulator::Recompute::full};
    auto& mode = plan.replicas.front().found.schedule->mode;
    std::fill(mode.begin(), mode.end(), 0U);
    mode.front() = 1;
    const auto figure = picture(emit::report(asked.job, asked.batch, plan));
    CHECK(count(figure, "memory mode 1 (recompute blocks:2), holds ") >= 2);  // a forward and its backward
    CHECK(count(figure, "memory mode 0 (recompute selective), holds ") > 0);
}
