#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/report.hpp"
#include "pipeweaver/planner/stage_plan.hpp"
#include "pipeweaver/search/search.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/parts_of_text.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

using namespace pipeweaver;
using testing::between;
using testing::count;

namespace {

schedule::Problem problem() {
    return search_tests::random_problem({.ranks = 3, .microbatches = 7, .stages = 6, .modes = true, .items = true}, 12);
}

// Of the problem, searched once for all tests.
const search::Found& searched() {
    static const search::Found found = [] {
        search::Options options;
        options.max_rounds = testing::full_or_short(60, 8);
        return search::solve(schedule::Replayer(problem()), options, in_order);
    }();
    return found;
}

// A search of three improvements, the last of which is a proof. Times are multiples of an even one.
search::Found by_hand() {
    auto found = searched();
    const Duration end = 2 * (found.replay.makespan / 2);  // a nanosecond does not matter here
    found.rounds = 99;
    found.replay.makespan = end;
    found.bound = end;
    found.history = {{0, 10, 2 * end, end / 2, "nesting"},
                     {4, 50, 3 * end / 2, end / 2, "groups"},
                     {24, 80, end, end / 2, "annealing"},
                     {99, 100, end, end, "annealing"}};
    return found;
}

}  // namespace

TEST_CASE("the report of a search draws every task before and after it, on one time axis") {
    const auto of = problem();
    const auto& found = searched();
    const auto page = emit::report(of, {}, found);
    const auto first = replay(of, found.first->schedule);
    REQUIRE(first.makespan > found.replay.makespan);
    for (const auto& [id, replay] : {std::pair("first", &first), std::pair("plan", &found.replay)}) {
        const auto figure = between(page, fmt::format("<figure class=\"schedule\" id=\"{}\">", id), "</figure>");
        CHECK(count(figure, "<rect class=\"bar ") == of.tasks.size());
        CHECK(count(figure, ": " + human(replay->makespan) + "</span>") == 1);
    }
    CHECK(page.find(fmt::format("data-horizon-ns=\"{}\"", first.makespan.count())) != std::string::npos);
    CHECK(page.find("<section id=\"torch\">") == std::string::npos);
    CHECK(page.find("<section id=\"pairs\">") == std::string::npos);
    CHECK(page.find("{{") == std::string::npos);
}

TEST_CASE("the picture of a search has its best and bound where they belong, and a dot for each improvement") {
    const auto of = problem();
    const auto page = emit::report(of, {}, by_hand());
    // Rounds 4, 24 and 99 of 99 lie at log 5, log 25 and log 100 over log 100; from 2 above the bound of 1/2 down to it
    // are 166 to 14 pixels, so that 1 is at 115.33.
    CHECK(page.find("<path class=\"known\" d=\"M0 14.00H349485V64.67H698970V115.33H1000000V115.33H1000000\"/>") !=
          std::string::npos);
    CHECK(page.find("<path class=\"bound\" d=\"M0 166.00H349485V166.00H698970V166.00H1000000V115.33H1000000\"/>") !=
          std::string::npos);
    CHECK(count(page, "<path class=\"dot ") == 3);
    CHECK(page.find("<path class=\"dot c1\" d=\"M349485 64.67h0\"><title>groups\nround 4: ") != std::string::npos);
    CHECK(page.find("<path class=\"dot c2\" d=\"M698970 115.33h0\"><title>annealing\nround 24: ") != std::string::npos);
    CHECK(page.find("proven optimal") != std::string::npos);
}

TEST_CASE("the tables of a search say what each finder gained") {
    const auto of = problem();
    const auto found = by_hand();
    const auto page = emit::report(of, {}, found);
    const auto finders = between(page, "<table class=\"finders\">", "</table>");
    const std::string half = human(found.replay.makespan / 2);
    for (const char* name : {"groups", "annealing"})
        CHECK(finders.find(fmt::format(
                  "{}</th><td class=\"n\">1</td><td class=\"n\">{}</td><td class=\"n\">50.0 %</td>", name, half)) !=
              std::string::npos);
    CHECK(finders.find("nesting") == std::string::npos);  // it found the start
    const auto all = between(page, "<table class=\"improvements\">", "</table>");
    CHECK(count(all, "<tr><td") == 4);
    CHECK(count(all, "100.00 %") == 1);      // at round 24: the makespan over half of it
    CHECK(count(all, ">0.00 %</td>") == 1);  // proven
}

TEST_CASE("equal searches give an equal report, on any number of threads, names are escaped") {
    auto of = problem();
    of.name = "a <b> & \"c\"";
    search::Options options;
    options.max_rounds = testing::full_or_short(40, 6);
    const schedule::Replayer replayer(of);
    const auto page = emit::report(of, {}, search::solve(replayer, options, in_order));
    CHECK(page == emit::report(of, {}, search::solve(replayer, options, on_threads(4))));
    CHECK(page.find("<b>") == std::string::npos);
    CHECK(page.find("<h1>a &lt;b&gt; &amp; &quot;c&quot;</h1>") != std::string::npos);
    for (const char* loads : {"src=", "href=", "url(", "@import"}) CHECK(page.find(loads) == std::string::npos);
}

TEST_CASE("a search that improved nothing, or has no rounds, has a report as well") {
    const auto of = problem();
    for (const char* strategy : {"default", "dip"}) {
        search::Options options;
        options.strategy = strategy;
        options.max_rounds = 0;
        const auto found = search::solve(schedule::Replayer(of), options, in_order);
        const auto page = emit::report(of, {strategy, 1, "", false}, found);
        CHECK(count(page, "<path class=\"dot ") == 1);
        CHECK(page.find("the start and 0 improvements") != std::string::npos);
        CHECK(page.find("<table class=\"finders\">") == std::string::npos);
        CHECK(page.find("nan") == std::string::npos);
    }
}

TEST_CASE("the report of stages draws a policy on the tasks that it orders") {
    planner::StageRequest request;
    request.table = schedule::parse_stage_table(
        "split.csv",
        "stage,rank,forward_us,backward_us,weight_us,activation_bytes,weights_bytes,send_bytes\n"
        "0,0,1000,1000,1000,4,8,0\n1,1,1000,1000,1000,4,8,0\n2,2,1000,1000,1000,4,8,0\n3,3,1000,1000,1000,4,8,0\n");
    request.options.microbatches = 8;
    request.max_rounds = 2;
    for (const double slowdown : {1.01, 1.32, 1.5}) {
        CAPTURE(slowdown);
        request.options.split_slowdown = slowdown;
        auto plan = planner::plan_stages(request, in_order, {});
        REQUIRE(plan.split_or_whole);
        for (const planner::PolicyRun& run : plan.policies)
            if (run.applies()) CHECK(schedule::replay(plan.problem_of(run), *run.result.schedule) == run.result.replay);
        // Each of four stages has two tasks a microbatch, or three in two parts.
        const bool is_split = plan.split_or_whole->split;
        CHECK(plan.best.problem.tasks.size() == (is_split ? 96 : 64));
        std::erase_if(plan.policies,
                      [&](const planner::PolicyRun& run) { return run.policy != (is_split ? "1f1b" : "zb-h1"); });
        const auto page = emit::report(request, plan);
        const auto bars_of = [&](const char* id) {
            return count(between(page, fmt::format("<figure class=\"schedule\" id=\"{}\">", id), "</figure>"),
                         "<rect class=\"bar ");
        };
        CHECK(bars_of("plan") == (is_split ? 96 : 64));
        CHECK(bars_of("chain") == (is_split ? 64 : 96));
    }
}
