#include "pipeweaver/emit/report.hpp"

#include "emit/plan/parts.hpp"
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/parts_of_text.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using testing::between;
using testing::count;
using testing::planned;

namespace {

struct Bar {
    long long x, width;
};

// Rectangles that open with this text. Not <regex>: GCC 12 takes it for uninitialised under the sanitizers.
std::vector<Bar> bars(const std::string& page, const std::string& opening) {
    std::vector<Bar> found;
    for (auto at = page.find(opening); at != std::string::npos; at = page.find(opening, at + 1)) {
        const auto number = [&](const std::string& key) {
            return std::stoll(page.substr(page.find(" " + key + "=\"", at) + key.size() + 3));
        };
        found.push_back({number("x"), number("width")});
    }
    return found;
}

Request small_request() {
    Request request = testing::small_request(1, {5, 0, 2, 9, 1, 4});
    request.batch.name = "by hand";
    request.job.max_rounds = 3;
    return request;
}

// With opponents, planned once for all tests.
const Plan& plan_of_small() {
    static const Plan plan = planned(small_request(), in_order, {});
    return plan;
}

// The same model on two replicas.
Request request_of_two() {
    Request request = small_request();
    testing::change_setup(request, [](emulator::Setup& setup) {
        setup.cluster = testing::small_cluster(16);
        setup.layout.dp = 2;
    });
    return request;
}

const Plan& plan_of_two() {
    static const Plan plan = planned(request_of_two(), in_order, {});
    return plan;
}

void check_bars(const std::string& figure, const schedule::Problem& problem, const schedule::Replay& replay) {
    CHECK(count(figure, "<rect class=\"bar ") == problem.tasks.size());
    CHECK(count(figure, "<g class=\"rank\"") == problem.ranks.size());
    for (std::size_t i = 0; i < problem.tasks.size(); ++i) {
        CAPTURE(problem.tasks[i].label);
        CHECK(count(figure, "<title>" + problem.tasks[i].label + "\nstart " + human(replay.start[i]) + ", duration ") ==
              1);
    }
}

}  // namespace

TEST_CASE("the report draws each task of the plan and of the fastest opponent once, with its start") {
    const auto request = small_request();
    const Plan& plan = plan_of_small();
    const auto page = emit::report(request.job, request.batch, plan);

    const auto& replica = plan.replicas.front();
    check_bars(between(page, "<figure class=\"schedule\" id=\"plan\">", "</figure>"), replica.cut.step.problem,
               replica.found.replay);
    REQUIRE(plan.baselines.pictured);
    check_bars(between(page, "<figure class=\"schedule\" id=\"chain\">", "</figure>"),
               plan.baselines.pictured->cut.step.problem, plan.baselines.pictured->replay);
    CHECK(count(page, "class=\"time memory\"") == replica.cut.step.problem.ranks.size());
    CHECK(count(page, "class=\"limit\"") == replica.cut.step.problem.ranks.size());
}

TEST_CASE("the longest schedule of the report reaches the end of the time axis and no bar passes it") {
    const auto request = small_request();
    const auto page = emit::report(request.job, request.batch, plan_of_small());

    long long last = 0;
    for (const char* opening : {"<rect class=\"bar ", "<rect class=\"tail ", "<rect class=\"optimizer "})
        for (const Bar& bar : bars(page, opening)) last = std::max(last, bar.x + bar.width);
    CHECK(last == 1'000'000);
}

TEST_CASE("the opponent that is pictured is the fastest that the target launches on the plan's own ranks") {
    const Plan& plan = plan_of_small();

    REQUIRE(plan.baselines.pictured);
    const BaselinePlan& shown = *plan.baselines.pictured;
    CHECK(shown.cut.partition.chains.size() == 1);
    CHECK(shown.replay.outcome == schedule::Outcome::completed);
    CHECK(shown.replay.makespan == shown.baseline.makespan);
    for (const Baseline& one : plan.baselines.all)
        if (one.launched && one.on_own_ranks) CHECK(shown.baseline.step <= one.step);
    CHECK(shown.baseline.launched);

    Request request = small_request();
    request.job.target = "megatron";
    const Plan flags = planned(request, in_order, {.targets = false, .robustness = false});
    REQUIRE(flags.baselines.pictured);
    CHECK(flags.baselines.pictured->baseline.launched);
    const auto& rows = flags.baselines.all;
    CHECK(std::any_of(rows.begin(), rows.end(),
                      [](const Baseline& one) { return one.is_opponent && one.on_own_ranks && !one.launched; }));
}

TEST_CASE("every pair of partition and policy has its row, and those that do not apply are listed below") {
    const auto request = small_request();
    const Plan& plan = plan_of_small();
    const auto page = emit::report(request.job, request.batch, plan);
    const auto table = between(page, "<section id=\"pairs\">", "</section>");
    const auto list = between(table, "Not applicable:", "</section>");

    CHECK(count(table, "<tr><td ") == plan.baselines.all.size());
    CHECK(count(table, "<tr class=\"best\">") == 1);
    CHECK(plan.baselines.not_applicable.size() > 0);
    CHECK(count(list, "<li>") <= plan.baselines.not_applicable.size());
    for (const NotApplicable& pair : plan.baselines.not_applicable) {
        CHECK(list.find("<li>" + pair.policy + " on ") != std::string::npos);
        CHECK(list.find(emit::report_parts::escape(pair.why)) != std::string::npos);
    }
}

TEST_CASE("pairs that do not apply for the same reason share a line, after the table of those that do") {
    const std::vector<NotApplicable> pairs{{"dip", 2, "1f1b", "two stages"},
                                           {"megatron", 1, "interleaved", "one stage"},
                                           {"balanced", 2, "1f1b", "two stages"},
                                           {"balanced", 4, "1f1b", "two stages"}};

    CHECK(emit::not_applicable_text(emit::not_applicable(pairs)) ==
          "not applicable:\n"
          "  1f1b on dip, balanced with 2 chunks: two stages\n"
          "  interleaved on megatron with 1 chunk: one stage\n"
          "  1f1b on balanced with 4 chunks: two stages\n");
    CHECK(emit::not_applicable_text(emit::not_applicable(std::vector<NotApplicable>{})).empty());

    const auto request = small_request();
    Plan plan = plan_of_small();
    plan.baselines.not_applicable = pairs;
    const auto text = emit::plan_table(request.job, request.batch, plan);
    CHECK(count(text, "two stages") == 2);
    CHECK(text.find("not applicable:") > text.find(plan.baselines.all.back().policy));
}

TEST_CASE("the report says against whom the plan was replayed with wrong costs, its gain and its wins") {
    const auto request = small_request();
    Plan plan = plan_of_small();
    plan.robustness = Robustness{
        .p10 = std::chrono::milliseconds(1900),
        .p50 = std::chrono::milliseconds(2000),
        .p90 = std::chrono::milliseconds(2200),
        .out_of_memory = 3,
        .against = {{.partition = "chain<1>",
                     .chunks_per_rank = 2,
                     .policy = "interleaved",
                     .wins = 187,
                     .losses = 12,
                     .p10 = 0.987,
                     .p50 = 1.125,
                     .p90 = 1.5},
                    {.partition = "dip", .policy = "dual-queue", .wins = 200, .p10 = 1.25, .p50 = 1.5, .p90 = 1.75}}};
    const auto section =
        between(emit::report(request.job, request.batch, plan), "<section id=\"robustness\">", "</section>");

    CHECK(count(section, "chain&lt;1&gt;, interleaved, 2 chunks a rank") == 1);
    CHECK(count(section,
                "<td class=\"n\">0.987x</td><td class=\"n\">1.125x</td><td class=\"n\">1.500x</td>"
                "<td class=\"n\">187 of 200</td><td class=\"n\">12</td>") == 1);
    CHECK(count(section, "2.000 s in the median, 1.900 s at p10 and 2.200 s at p90") == 1);
    CHECK(count(section, "in 3 of 200 replays") == 1);
    CHECK(count(section, "dip, dual-queue, 1 chunk a rank") == 1);
    CHECK(count(section, "<td class=\"n\">1.250x</td><td class=\"n\">1.500x</td><td class=\"n\">1.750x</td>") == 1);

    const auto text = emit::plan_table(request.job, request.batch, plan);
    CHECK(text.find(
              "  chain<1>, interleaved, 2 chunks   p10 0.99x, p50 1.12x, p90 1.50x; the plan wins 187, loses 12\n") !=
          std::string::npos);
    CHECK(text.find(
              "  dip, dual-queue, 1 chunk          p10 1.25x, p50 1.50x, p90 1.75x; the plan wins 200, loses 0\n") !=
          std::string::npos);
}

TEST_CASE("a plan is replayed against the opponent that is pictured, then the fastest policy on its partition") {
    auto request = small_request();
    request.job.split = planner::Split::never;  // of so small a model, wrong costs take a tenth of what a split gains
    const auto plan = planned(request, in_order, {});
    REQUIRE(plan.baselines.pictured);
    REQUIRE(plan.robustness);
    const auto& against = plan.robustness->against;
    REQUIRE(against.size() == 2);
    const Baseline& opponent = plan.baselines.pictured->baseline;
    CHECK(against[0].partition == opponent.partition);
    CHECK(against[0].policy == opponent.policy);
    CHECK(against[0].chunks_per_rank == opponent.chunks_per_rank);
    CHECK(against[1].partition == plan.partition().name);
    for (const Baseline& one : plan.baselines.all)
        if (one.policy == against[1].policy && !one.is_opponent)
            for (const Baseline& other : plan.baselines.all)
                if (!other.is_opponent) CHECK(one.makespan <= other.makespan);
}

TEST_CASE("without a usual schedule the report says that nothing was replayed") {
    const auto request = small_request();
    Plan plan = plan_of_small();
    REQUIRE(plan.robustness);  // else the test above would have shown nothing of a real plan
    plan.robustness.reset();
    const auto section =
        between(emit::report(request.job, request.batch, plan), "<section id=\"robustness\">", "</section>");

    CHECK(count(section, "there is nothing to compare with") == 1);
    CHECK(count(section, "<table") == 0);
}

TEST_CASE("the report shows the layouts that were tried, and each replica with its schedule") {
    auto request = request_of_two();
    LayoutChoice choice;
    const auto tried = [](const emulator::Layout& layout, int seconds, const char* partition, const char* policy) {
        LayoutTried one;
        one.layout = layout;
        one.microbatches = 6;
        one.step = std::chrono::seconds(seconds);
        one.partition = partition;
        one.policy = policy;
        one.recompute = {.everywhere = emulator::Recompute::full};
        one.memory = Bytes{std::int64_t{3} << 30};
        return one;
    };
    choice.tried = {tried({.tp = 2, .pp = 4, .dp = 2}, 3, "dip", "dual-queue"),
                    tried({.tp = 4, .pp = 2, .dp = 2}, 6, "balanced", "1f1b")};
    choice.tried.back().is_own = true;
    choice.equal_batch = true;
    choice.passed_over = 5;
    choice.cut_short = true;
    choice.not_reached = 7;
    choice.refused = {{"tp 8 does not divide <4> heads", 3}};
    request.job.layout_choice = choice;
    const Plan& plan = plan_of_two();
    const auto page = emit::report(request.job, request.batch, plan);

    const auto layouts = between(page, "<section id=\"layouts\">", "</section>");
    CHECK(count(layouts,
                "<tr class=\"best\"><th scope=\"row\">2 x 4 x 2</th><td data-column=\"ZeRO\">1</td>"
                "<td data-column=\"partition, chunks\">dip 1</td><td data-column=\"schedule\">dual-queue</td>"
                "<td data-column=\"recompute\">full</td><td class=\"n\" data-column=\"memory\">3.00 GiB</td>") == 1);
    CHECK(count(layouts,
                "<th scope=\"row\">4 x 2 x 2 (your own)</th><td data-column=\"ZeRO\">1</td>"
                "<td data-column=\"partition, chunks\">balanced 1</td><td data-column=\"schedule\">1f1b</td>") == 1);
    CHECK(count(layouts, "<li>5 layouts, not tried") == 1);
    constexpr const char* cut_short = "7 not tried: the time for layouts was over; without --budget they are";
    CHECK(count(layouts, cut_short) == 1);
    CHECK(count(layouts, "<td class=\"n\" data-column=\"over the fastest\">2.000x</td>") == 1);
    CHECK(count(layouts, "<li>3 layouts: tp 8 does not divide &lt;4&gt; heads</li>") == 1);

    const auto text = emit::plan_table(request.job, request.batch, plan);
    CHECK(count(text, "layout: the fastest of 2 that fit for the same batch, by known schedules") == 1);
    CHECK(count(text, "> tp 2  pp 4   dp 2    zero 1  step") == 1);
    CHECK(count(text, ", recompute full), your own\n") == 1);
    CHECK(count(text, "  5 not tried: even without recomputation they would take longer") == 1);
    CHECK(count(text, cut_short) == 1);

    const auto replicas = between(page, "<section id=\"replicas\">", "</section>");
    REQUIRE(plan.replicas.size() == 2);
    CHECK(count(replicas, "by cost") == 1);
    CHECK(count(replicas, human(plan.loads.mean)) >= 1);
    for (std::size_t r = 0; r < 2; ++r) {
        const ReplicaPlan& replica = plan.replicas[r];
        const auto row = between(replicas, "<th scope=\"row\">" + std::to_string(r) + "</th>", "</tr>");
        CHECK(count(row, "<td class=\"n\">" + std::to_string(replica.microbatches.size()) + "</td>") >= 1);
        CHECK(count(row, human(replica.found.replay.makespan)) == 1);
    }
    CHECK(count(replicas, "<tr class=\"best\">") >= 1);
}

TEST_CASE("a layout that was tried is named with all degrees that it has") {
    LayoutChoice choice;
    for (const emulator::Layout& layout :
         {emulator::Layout{.tp = 2, .pp = 4, .dp = 2}, emulator::Layout{.tp = 2, .pp = 4, .dp = 2, .ep = 2},
          emulator::Layout{.tp = 1, .pp = 4, .dp = 1, .cp = 4},
          emulator::Layout{.tp = 1, .pp = 2, .dp = 4, .cp = 2, .ep = 8}}) {
        LayoutTried one;
        one.layout = layout;
        one.microbatches = 1;
        one.step = std::chrono::seconds(1);
        choice.tried.push_back(one);
    }
    const auto html = emit::report_parts::layouts(choice);
    for (const char* name : {"2 x 4 x 2", "2 x 4 x 2, ep 2", "1 x 4 x 1, cp 4", "1 x 2 x 4, cp 2, ep 8"})
        CHECK_MESSAGE(count(html, fmt::format("<th scope=\"row\">{}</th>", name)) == 1, name);
}

TEST_CASE("without a choice of layouts and with one replica the report has no section about either") {
    const auto request = small_request();
    const auto page = emit::report(request.job, request.batch, plan_of_small());
    CHECK(page.find("<section id=\"layouts\">") == std::string::npos);
    CHECK(page.find("<section id=\"replicas\">") == std::string::npos);
    CHECK(page.find("{{") == std::string::npos);
}

TEST_CASE("the report loads nothing") {
    const auto request = small_request();
    const auto page = emit::report(request.job, request.batch, plan_of_small());

    for (const char* loader : {"src=", "href=", "<link", "<iframe", "<object", "<embed", "@import", "url(", "fetch(",
                               "XMLHttpRequest", "import("}) {
        CAPTURE(loader);
        CHECK(page.find(loader) == std::string::npos);
    }
    CHECK(page.find("{{") == std::string::npos);
}

TEST_CASE("equal plans give an equal report") {
    const auto request = small_request();

    CHECK(emit::report(request.job, request.batch, planned(request, in_order, {})) ==
          emit::report(request.job, request.batch, plan_of_small()));
}

TEST_CASE("texts from files are escaped in the report") {
    auto request = small_request();
    request.batch.name = "<script>alert('{{title}}')</script>";
    testing::change_setup(request, [](emulator::Setup& setup) {
        setup.model.name = "a\"b & <c>";
        setup.model.source = "<b>bold</b>";
    });
    const auto page =
        emit::report(request.job, request.batch, planned(request, in_order, {.opponents = !testing::short_form()}));

    CHECK(count(page, "<script>") == 1);
    CHECK(page.find("&lt;script&gt;alert(&#39;{{title}}&#39;)&lt;/script&gt;") != std::string::npos);
    CHECK(page.find("<h1>a&quot;b &amp; &lt;c&gt; on 8 x h100_sxm</h1>") != std::string::npos);
    CHECK(page.find("<b>bold") == std::string::npos);
}

TEST_CASE("the parts of a rank's time fill the step") {
    const auto request = small_request();
    const Plan& plan = plan_of_small();
    const auto page = emit::report(request.job, request.batch, plan);

    // What no operator class accounts for would be shown as waiting.
    const auto& step = plan.replicas.front().cut.step;
    for (std::size_t i = 0; i < step.problem.tasks.size(); ++i)
        CHECK(step.cost_of(i).time == step.problem.tasks[i].duration);
    for (std::size_t r = 0; r < 4; ++r) {
        const auto row = between(page, "where the time of rank " + std::to_string(r), "</svg>");
        long long end = 0;
        for (const Bar& part : bars(row, "<rect class=\"c")) {
            CHECK(part.x == end);
            end += part.width;
        }
        CHECK(std::abs(end - 1'000'000) <= 10);
    }
}

TEST_CASE("step, makespan, bound and gap of the table can be checked against each other") {
    const auto request = small_request();
    Plan plan = plan_of_small();
    plan.makespan = std::chrono::milliseconds(3713);
    plan.step = std::chrono::milliseconds(3726);
    plan.lower_bound = std::chrono::milliseconds(3550);
    const auto text = emit::plan_table(request.job, request.batch, plan);
    CHECK(text.find("\nstep 3.726 s = makespan 3.713 s + 0.013 s optimizer ") != std::string::npos);
    CHECK(text.find("\nbound 3.550 s on the makespan, gap 4.6 %\n") != std::string::npos);  // 3.713 / 3.550
    CHECK(text.find(" by pass       3.713 s    4.6 %    3.726 s   1.000x\n") != std::string::npos);
}

TEST_CASE("with several replicas memory is each rank's fullest, and the slowest is pictured, by its number") {
    const auto request = request_of_two();
    Plan plan = plan_of_two();
    REQUIRE(plan.replicas.size() == 2);
    plan.slowest = 1;
    auto& peak = plan.replicas[1].found.replay.peak;
    peak[2] = plan.replicas[0].found.replay.peak[2] + Bytes{std::int64_t{1} << 30};
    peak[3] = plan.replicas[0].found.replay.peak[3] - Bytes{1};
    const auto text = emit::plan_table(request.job, request.batch, plan);
    const auto row_of = [&](const std::string& start) { return between(text, "\n" + start, "\n0"); };
    CHECK(row_of("rank ").find("fullest replica") != std::string::npos);
    CHECK(between(text, "\n2      " + fmt::format("{:>11}", human(peak[2])), "\n3").ends_with(" 1"));
    CHECK(between(text, "\n3      ", "\nnot counted: ").ends_with(" 0"));
    CHECK(text.find("\nreplica 1 of 2, the slowest: makespan ") != std::string::npos);
    CHECK(text.find("torch/schedule.csv, for every replica): ") != std::string::npos);

    const auto page = emit::report(request.job, request.batch, plan);
    CHECK(count(page, "Replica 1 of 2 is shown, the slowest.") == 4);
    CHECK(page.find("torch/schedule.csv, for every replica") != std::string::npos);
}
