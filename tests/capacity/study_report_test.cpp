// The page of a study.
#include "pipeweaver/capacity/answer.hpp"
#include "tests/capacity/hand_made_study.hpp"
#include "tests/support/parts_of_text.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace pipeweaver;
using namespace pipeweaver::capacity_tests;
using testing::between;
using testing::count;

namespace {

std::string page_of(const capacity_tests::Found& found) {
    return capacity::report_html(found.study, found.results, found.ranking);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string figure_of(const std::string& page, const std::string& id) {
    return between(page, "<figure id=\"" + id + "\">", "</figure>");
}

}  // namespace

TEST_CASE("the page begins with the answers and their arithmetic") {
    const auto page = page_of(found_by_hand());
    const auto figures = between(page, "<dl class=\"figures\">", "</dl>");

    CHECK(count(figures, "<div class=\"figure\">") == 4);
    CHECK(has(figures, "<dt>fewest GPUs</dt><dd><strong>128 x b200-sxm</strong>"));
    CHECK(has(figures,
              "<dt>cheapest</dt><dd><strong>256 x h100-sxm</strong><span>tp 4 cp 2 pp 4 dp 8 zero 1; 3.5 days, "
              "54,255 USD; row 1</span>"));
    CHECK(has(figures, "row 4, at risk</span>"));
    CHECK(has(between(page, "<p id=\"arithmetic\">", "</p>"), "19,074 steps x 16.00 s = 3.53 days"));
    CHECK(has(between(page, "<p id=\"ties\">", "</p>"), "row 3"));
    CHECK(page.find("id=\"arithmetic\"") < page.find("<section id=\"pareto\">"));
}

TEST_CASE("every row is a dot in each plot, and the front's rows have their numbers and errors") {
    const auto page = page_of(found_by_hand());

    for (const std::string id : {"pareto-plot", "tokens-plot", "step-plot"}) {
        CAPTURE(id);
        CHECK(count(figure_of(page, id), "<path class=\"dot c") == 4);
    }
    const auto pareto = figure_of(page, "pareto-plot");
    CHECK(count(pareto, "<path class=\"error c0\"") == 1);
    CHECK(count(pareto, "<path class=\"error c1\"") == 2);
    CHECK(count(pareto, "<b class=\"place\"") == 3);
    CHECK(count(pareto, "<path class=\"limit\"") == 1);
    CHECK(has(pareto, "row 3: 128 x b200-sxm\nbatch small.json\ntp 4 cp 2 pp 4 dp 4 zero 1\nstep 15.00 s +- 12.0 %"));
    CHECK(has(pareto, "USD over days"));
}

TEST_CASE("a line of the scaling plots is of one cluster and one choice of options") {
    const auto found = found_by_hand();
    const auto apart = figure_of(page_of(found), "step-plot");
    CHECK(count(apart, "<path class=\"series ") == 4);
    auto alike = found;
    for (Cell& cell : alike.study.cells) cell.asked.set("batch", "small.json");
    const auto joined = figure_of(page_of(alike), "step-plot");
    CHECK(count(joined, "<path class=\"series ") == 2);
    CHECK(has(joined, "<i style=\"left:"));
    CHECK(has(joined, ">128</i>"));
    CHECK(has(joined, ">256</i>"));
}

TEST_CASE("the table has every row, and the answers' commands are open") {
    const auto found = found_by_hand();
    const auto page = page_of(found);
    const auto rows = between(page, "<section id=\"rows\">", "</section>");

    CHECK(count(rows, "<tr class=\"best\">") == 3);
    CHECK(count(rows, "<tr><td") == 1);
    CHECK(has(rows, "data-column=\"planned\">16.00 s</td>"));
    CHECK(has(rows, "data-column=\"notes\">days missed</td>"));
    CHECK(!has(rows, "GPUs wait"));
    auto fed = found_by_hand();
    fed.ranking.rows[2].input = capacity::RowInput{.waits = seconds(5), .cores = 1'280};
    CHECK(has(page_of(fed), "data-column=\"GPUs wait\">5.000 s</td>"));
    const auto run = between(page, "<section id=\"run\">", "</section>");
    CHECK(count(run, "<pre class=\"command\">pipeweaver plan ") == 4);
    CHECK(count(run.substr(0, run.find("<details")), "<pre class=\"command\">") == 3);
}

TEST_CASE("every cell has its points and the reasons of the others behind a fold") {
    const auto page = page_of(found_by_hand());
    const auto cells = between(page, "<section id=\"cells\">", "</section>");

    CHECK(count(cells, "<details>") == 5);
    CHECK(count(cells, "<tr><th scope=\"row\">tp ") == 8);
    CHECK(count(cells, "<li>1 layout passed over") == 4);
    CHECK(count(cells, "<li>1 refused: memory: a GPU would hold 90 GiB</li>") == 4);
    CHECK(
        has(cells, "<summary>512 x b200-sxm, batch a, &quot;b&quot; &amp; &lt;c&gt;.json: cannot be asked</summary>"));
    const auto basis = between(page, "<section id=\"basis\">", "</section>");
    CHECK(has(basis, "<td>h100-sxm 2.50, b200-sxm 6.00</td>"));
    CHECK(has(basis, "1, 256 x h100-sxm</th><td class=\"n\">50.0 %</td>"));
}

TEST_CASE("texts are escaped and nothing is loaded from anywhere") {
    const auto page = page_of(found_by_hand());

    CHECK(has(page, "<title>what to rent &lt;or buy&gt; - pipeweaver</title>"));
    CHECK_FALSE(has(page, "<or buy>"));
    CHECK_FALSE(has(page, "<c>"));
    for (const std::string loads : {"http:", "https:", "src=", "<link", "@import", "url(", "<script", "{{"}) {
        CAPTURE(loads);
        CHECK_FALSE(has(page, loads));
    }
}

TEST_CASE("the page of a study without a row has reasons and no plot") {
    auto found = found_by_hand();
    found.ranking.rows.clear();
    found.ranking.answers = {};
    const auto page = page_of(found);

    CHECK(has(page, "<strong>none</strong>"));
    CHECK(has(page, "<p id=\"no-rows\">"));
    CHECK_FALSE(has(page, "<figure"));
    CHECK_FALSE(has(page, "<section id=\"rows\">"));
    CHECK(count(page, "refused: memory") == 4);
}

TEST_CASE("where no row meets what is asked the page says so and has all rows") {
    auto found = found_by_hand();
    found.ranking.answers = {};
    found.ranking.none_meets = "no row meets the constraints; days bind";
    const auto page = page_of(found);

    CHECK(has(page, "<p id=\"none-meets\">No row meets the constraints; days bind.</p>"));
    CHECK(has(page, "<p id=\"arithmetic\">Row 1: "));
    CHECK(count(between(page, "<section id=\"rows\">", "</section>"), "<tr><td") == 4);
}
