// The report's section "How to run it", and which rows of its long lists stand open.
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/plan_files.hpp"
#include "pipeweaver/emit/report.hpp"
#include "tests/support/parts_of_text.hpp"
#include "tests/support/plan_files.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using testing::between;
using testing::count;
using testing::planned;

namespace {

Request request() {
    Request request = testing::small_request(1, {5, 0, 2, 9, 1, 4});
    request.job.max_rounds = 3;
    return request;
}

// Planned once for all tests.
const Plan& plan_of_request() {
    static const Plan plan = planned(request());
    return plan;
}

Rung rung(std::string name, std::string command, std::chrono::milliseconds step) {
    Rung one{.name = std::move(name), .target = "torch-actions", .way = "balanced 1f1b", .step = step};
    one.tokens = 4096;
    one.peak = Bytes{std::int64_t{3} << 30};
    one.usable = Bytes{std::int64_t{4} << 30};
    one.needs = "what " + one.name + " <needs>";
    one.files = {one.name + ".json"};
    one.command = std::move(command);
    return one;
}

Ladder ladder() {
    Ladder of;
    of.rungs = {rung("now", "pipeweaver emulate --policy 1f1b", std::chrono::milliseconds(3000)),
                rung("data", "pipeweaver emulate --packing \"a b\"", std::chrono::milliseconds(2000)),
                rung("flags", "pipeweaver emulate --chunks 4", std::chrono::milliseconds(1500))};
    of.rungs.push_back(of.rungs.back());
    of.rungs.back().name = "schedule";
    of.rungs.back().why_nothing = "the searched order is slower";
    of.headline = 2;
    return of;
}

// Commands have each word in an element of its own.
std::string without_spans(std::string html) {
    for (const std::string tag : {"<span>", "</span>"})
        for (auto at = html.find(tag); at != std::string::npos; at = html.find(tag, at)) html.erase(at, tag.size());
    return html;
}

std::string page_of(const Plan& plan) { return emit::report(request().job, request().batch, plan); }

std::string run_section(const Plan& plan) {
    return without_spans(between(page_of(plan), "<section id=\"run\">", "</section>"));
}

// Cells of a table's rows in the order of the page.
std::vector<std::vector<std::string>> rows_of(const std::string& html) {
    std::vector<std::vector<std::string>> rows;
    for (auto row = html.find("<tr><td"); row != std::string::npos; row = html.find("<tr><td", row + 1)) {
        const auto end = html.find("</tr>", row);
        rows.emplace_back();
        for (auto cell = html.find("<td", row); cell < end; cell = html.find("<td", cell + 1)) {
            const auto from = html.find('>', cell) + 1;
            rows.back().push_back(html.substr(from, html.find("</td>", from) - from));
        }
    }
    return rows;
}

}  // namespace

TEST_CASE("right after the ladder the report says how its best rung is run") {
    Plan plan = plan_of_request();
    plan.ladder = ladder();
    const auto page = page_of(plan);
    CHECK(page.find("<section id=\"ladder\">") < page.find("<section id=\"run\">"));
    CHECK(page.find("<section id=\"run\">") < page.find("<section id=\"schedules\">"));

    const auto section = run_section(plan);
    const auto best = between(section, "<p class=\"do\">", "</p>");
    CHECK(best.find("flags: step 1.500 s, 2.000x as fast as now") != std::string::npos);
    CHECK(best.find("what flags &lt;needs&gt; (flags.json)") != std::string::npos);
    const auto commands = between(section, "<h3>Commands", "<h3>Files");
    const auto fold = between(commands, "<details><summary>2 commands of the other rungs", "</details>");
    CHECK(commands.find("<pre class=\"command\">pipeweaver emulate --chunks 4</pre>") < commands.find("<details>"));
    CHECK(fold.find("<pre class=\"command\">pipeweaver emulate --policy 1f1b</pre>") != std::string::npos);
    CHECK(fold.find("<pre class=\"command\">pipeweaver emulate --packing &quot;a b&quot;</pre>") != std::string::npos);
    CHECK(count(commands, "emulate --chunks 4") == 1);  // not of the rung that gains nothing
    CHECK(commands.find("pipeweaver replay replica-000/problem.json.gz replica-000/solution.json") !=
          std::string::npos);
}

TEST_CASE("the main figures are the advised rung's, beside the fastest below it that the target runs") {
    Plan plan = plan_of_request();
    plan.ladder = ladder();
    const auto figures = [&] { return between(page_of(plan), "<dl class=\"figures\">", "</dl>"); };
    CHECK(figures().find("<dt>step</dt><dd><strong>1.500 s</strong><span>flags: balanced 1f1b</span>") !=
          std::string::npos);
    CHECK(
        figures().find("<dt>speedup over data</dt><dd><strong>1.333x</strong><span>balanced 1f1b: the fastest below it "
                       "that torch-actions runs; step 2.000 s</span>") != std::string::npos);
    CHECK(figures().find("<strong>3.00 GiB</strong><span>limit 4.00 GiB</span>") != std::string::npos);
    CHECK(figures().find("MFU") == std::string::npos);
    plan.ladder.rungs[2].step = plan.step;
    CHECK(figures().find("MFU") != std::string::npos);

    plan.ladder.rungs[1].target = "torch-csv";
    CHECK(figures().find("<dt>speedup over now</dt>") != std::string::npos);
    plan.ladder.headline = 0;
    CHECK(figures().find(" over ") == std::string::npos);
}

TEST_CASE("the ladder's figures stand before its texts, each with its column's name") {
    Plan plan = plan_of_request();
    plan.ladder = ladder();
    const auto table = between(page_of(plan), "<table class=\"ladder stack\">", "</table>");
    CHECK(table.find("<tr class=\"best\"><td data-column=\"rung\">flags</td><td class=\"n\" data-column=\"step\">1.500 "
                     "s</td><td class=\"n\" data-column=\"over now\">2.000x</td><td class=\"n\" "
                     "data-column=\"fullest rank\">3.0 of 4.0 GiB</td>") != std::string::npos);
}

TEST_CASE("every chunk of every rank has a row with its layers, and how many backwards run with which recomputation") {
    Plan plan = plan_of_request();
    ReplicaPlan& replica = plan.replicas.front();
    replica.cut.partition.modes = emulator::usual_modes();
    const auto& problem = replica.cut.step.problem;
    auto& modes = replica.found.schedule->mode;
    std::fill(modes.begin(), modes.end(), 0U);
    std::map<std::string, int> backwards;
    std::int64_t changed = -1;
    for (std::size_t k = 0; k < problem.pairs.size(); ++k) {
        const std::int64_t stage = *problem.tasks[index(problem.pairs[k].backward)].stage;
        if (changed < 0) {
            changed = stage;
            modes[k] = 2;
        }
        ++backwards[std::to_string(stage)];
    }
    const auto rows = rows_of(between(run_section(plan), "<h3>Stages", "<h3>Commands"));
    std::map<std::string, std::size_t> chunks;
    std::size_t stages = 0;
    for (const auto& chain : replica.cut.partition.chains)
        for (const auto& stage : chain.stages) {
            const auto number = std::to_string(stages++);
            CAPTURE(number);
            const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one[2] == number; });
            REQUIRE(row != rows.end());
            const std::string rank = std::to_string(index(stage.rank));
            std::vector<std::string> layers;
            std::int64_t sum = 0;
            for (const auto& part : stage.parts) sum += part.count;
            CHECK((*row)[0] == rank);
            CHECK((*row)[1] == std::to_string(chunks[rank]++));
            const auto& first = stage.parts.front();
            CHECK((*row)[3].starts_with(
                fmt::format("{} {}", request().job.setup->model.modules[first.module].name, first.first)));
            CHECK((*row)[4] == std::to_string(sum));
            const int all = backwards[number];
            CHECK((*row)[5] == (all == 0 ? "no backward"
                                : number == std::to_string(changed)
                                    ? (all == 1 ? "full 1" : fmt::format("none {}, full 1", all - 1))
                                    : fmt::format("none {}", all)));
        }
    CHECK(rows.size() == stages);
}

TEST_CASE("a plan that is an opponent's has its one setting in place of counts") {
    Plan plan = plan_of_request();
    plan.is_opponents = true;
    auto& replica = plan.replicas.front();
    replica.cut.partition.modes = {emulator::Recompute::blocks(3)};
    std::fill(replica.found.schedule->mode.begin(), replica.found.schedule->mode.end(), 0U);
    const auto rows = rows_of(between(run_section(plan), "<h3>Stages", "<h3>Commands"));
    REQUIRE(!rows.empty());
    for (const auto& row : rows) CHECK((row[5] == "blocks:3" || row[5] == "no backward"));
    const auto own = between(page_of(plan), "<td data-column=\"schedule\">plan</td>", "</tr>");
    CHECK(own.find("<td data-column=\"recompute\">blocks:3</td>") != std::string::npos);
    CHECK(emit::plan_table(request().job, request().batch, plan).find(" blocks:3 ") != std::string::npos);
}

TEST_CASE("with many chunks the stages are folded by rank, which says what it has in all") {
    Plan plan = plan_of_request();
    auto& chains = plan.replicas.front().cut.partition.chains;
    chains.resize(1);
    chains.front().stages.clear();
    for (std::uint32_t stage = 0; stage < 56; ++stage)
        chains.front().stages.push_back({RankId{stage % 4}, {{0, stage, 1}, {1, stage, stage < 4 ? 2 : 0}}});
    const auto section = between(run_section(plan), "<h3>Stages", "<h3>Commands");
    const auto modules = request().job.setup->model.modules;
    CHECK(count(section, "</summary>") == 4);
    CHECK(count(section, fmt::format("<details><summary>rank 3: 14 stages, 14 layers of {}, 2 of {}; recompute ",
                                     modules[0].name, modules[1].name)) == 1);
    CHECK(count(section, "<table class=\"stages\">") == 4);
    CHECK(rows_of(section).size() == 56);
    CHECK(section.find(fmt::format("<td>{0} 3, {1} 3-4</td>", modules[0].name, modules[1].name)) != std::string::npos);
}

TEST_CASE("the files of the plan's folder are those that are written") {
    Request asked = request();
    for (const bool defer : {false, true}) {
        if (defer) asked.job.defer = 8;
        const auto page = emit::report(asked.job, asked.batch, plan_of_request());
        const auto table = between(page, "<table class=\"folder stack\">", "</table>");
        for (const FileToWrite& file : testing::plan_files(asked.job, asked.batch, plan_of_request(), "")) {
            const std::string name = file.path.filename().string();
            CAPTURE(name);
            if (name != "report.html") CHECK(table.find(name) != std::string::npos);
        }
        CHECK((table.find("deferred.jsonl") != std::string::npos) == defer);
    }
    asked.job.lists_by_rank = true;
    const auto page = emit::report(asked.job, asked.batch, plan_of_request());
    CHECK(page.find(">replica-000/actions/rank-NNN.json.gz<") != std::string::npos);
    CHECK(page.find(">replica-000/actions.json<") == std::string::npos);
}

TEST_CASE("the ten fastest schedules stand open below the plan, the others are folded and counted") {
    Plan plan = plan_of_request();
    plan.baselines.all.clear();
    for (int i = 0; i < 25; ++i) {
        Baseline one{.partition = fmt::format("cut-{}", i), .policy = "1f1b"};
        one.step = one.makespan = plan.step + std::chrono::milliseconds(25 - i);  // the last is the fastest
        plan.baselines.all.push_back(one);
    }
    plan.baselines.not_applicable.clear();
    for (int i = 0; i < 14; ++i)
        plan.baselines.not_applicable.push_back({"cut", 1, fmt::format("policy-{}", i), fmt::format("why {}", i)});
    const auto section = between(page_of(plan), "<section id=\"pairs\">", "</section>");
    const auto open = section.substr(0, section.find("<details>"));
    const auto fold = between(section, "<details><summary>15 slower</summary>", "</details>");
    CHECK(count(open, "<tr class=\"best\">") == 1);
    CHECK(count(open, "<tr><td") == 10);
    CHECK(open.find(">cut-24<") < open.find(">cut-15<"));
    CHECK(open.find(">cut-15<") != std::string::npos);
    CHECK(count(fold, "<tr><td") == 15);
    CHECK(fold.find(">cut-14<") != std::string::npos);
    const auto more = between(section, "<details><summary>4 more that do not apply</summary>", "</details>");
    CHECK(count(more, "<li>") == 4);
    CHECK(count(section, "<li>") == 14);
}

TEST_CASE("the ten fastest layouts stand open, with them the one that was taken and the user's own") {
    LayoutChoice choice;
    for (int i = 0; i < 14; ++i) {
        LayoutTried one;
        one.layout = {.tp = 1, .pp = 1, .dp = i + 1};
        one.microbatches = 1;
        one.step = std::chrono::milliseconds(100 + i);
        one.policy = "1f1b";
        choice.tried.push_back(one);
    }
    choice.taken = 11;
    choice.tried[13].is_own = true;
    const auto html = emit::report_parts::layouts(choice);
    const auto open = html.substr(0, html.find("<details>"));
    CHECK(count(open, "<th scope=\"row\">") == 12);
    CHECK(open.find(">1 x 1 x 12<") != std::string::npos);
    CHECK(open.find(">1 x 1 x 14 (your own)<") != std::string::npos);
    CHECK(count(between(html, "<details><summary>2 slower</summary>", "</details>"), "<th scope=\"row\">") == 2);
}
