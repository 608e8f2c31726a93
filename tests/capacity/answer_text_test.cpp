// The answer in a terminal, and its picture.
#include "capacity/show/pareto.hpp"
#include "capacity/show/scale.hpp"
#include "capacity/study/rows.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/capacity/answer.hpp"
#include "tests/capacity/hand_made_study.hpp"
#include "tests/support/parts_of_text.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::capacity_tests;
using testing::count;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
}

std::string answer(const capacity_tests::Found& found) {
    return capacity::answer_text(found.study, found.results, found.ranking);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the answers come first, then the other rows by their places") {
    const auto lines = lines_of(answer(found_by_hand()));

    REQUIRE(lines.size() > 8);
    CHECK(lines[0] == "what to rent <or buy>: 300 B tokens, in at most 5 days");
    CHECK(lines[1] == "5 cells, points: 8 judged, 4 passed over by bounds, 4 refused");
    CHECK(has(lines[3], "GPUs  layout"));
    CHECK(lines[4].starts_with("fewest GPUs    3"));
    CHECK(lines[5].starts_with("cheapest       1"));
    CHECK(lines[6].starts_with("fastest        4"));
    CHECK(lines[7].starts_with("               2"));
    CHECK(lines[4].ends_with("tied"));
    CHECK(lines[6].ends_with("at risk"));
    CHECK(lines[7].ends_with("days missed"));
    for (const std::string part : {"h100-sxm", " 256 ", "tp 4 cp 2 pp 4 dp 8 zero 1", " 20.00 s", " 16.00 s", " 3,840 ",
                                   " 3.5 ", " 21,702 ", " 54,255 ", " 12.0 ", " 4.0 %"}) {
        CAPTURE(part);
        CHECK(has(lines[5], part));
    }
}

TEST_CASE("what GPUs wait for samples stands below, with its price and what is not replayed") {
    auto found = found_by_hand();
    CHECK(!has(answer(found), "wait for samples"));
    capacity::RowInput waits{.waits = seconds(5), .cores = 1'280, .decides = "decode", .enough_workers = 12};
    found.ranking.rows[2].input = waits;
    found.ranking.rows[3].input = capacity::RowInput{.why_not = "windows come round too seldom"};
    found.ranking.rows[2].cores_bought = 96;
    const std::string text = answer(found);
    CHECK(has(text, "what GPUs wait for samples"));
    // 128 GPUs of 6 USD for 5 s of 20.
    for (const std::string part : {" 5.000 s ", " 25.0 % ", " 1.0667 ", " decode ", " 12 ", " 1,280 ", " 96"}) {
        CAPTURE(part);
        CHECK(has(text, part));
    }
    CHECK(has(text, "row 4: its loader is not replayed: windows come round too seldom"));
    const auto json = capacity::answer_json(found.study, found.results, found.ranking);
    CHECK(json["rows"][2]["input"]["waits_ns"] == 5'000'000'000);
    CHECK(json["rows"][2]["step_ns"] == 20'000'000'000);
    CHECK(json["rows"][3]["input"]["why_not"] == "windows come round too seldom");
    CHECK(!json["rows"][0].contains("input"));
}

TEST_CASE("a row that is several answers stands there once") {
    auto found = found_by_hand();
    found.ranking.answers = {.fewest = 0, .cheapest = 0, .fastest = 0};
    const auto lines = lines_of(answer(found));

    CHECK(lines[4].starts_with("fewest GPUs, cheapest, fastest    1"));
    CHECK(count(answer(found), "cheapest") == 2);  // in the table, and of the tie
}

TEST_CASE("the arithmetic goes from tokens to USD, and ties and rows without a plan are explained") {
    const auto text = answer(found_by_hand());

    CHECK(has(text,
              "row 1: 300 B tokens / 15,728,640 tokens a step = 19,074 steps x 16.00 s = 3.53 days x 256 GPUs x 24 h = "
              "21,702 GPU-hours x 2.50 USD = 54,255 USD\n"));
    CHECK(has(text, "tied with row 1 (cheapest): row 3, at most 12.5 % above it"));
    CHECK(has(text, "h100-sxm 4.0 % (fitted), b200-sxm 12.0 % (assumed)\n"));
    CHECK(has(text, "row 4 is not planned: no schedule fits\n"));
    CHECK(has(text, "at risk: a step that much longer"));
    // Row 2 allocates 60 of the 80 GiB of an H100, row 1 58.
    CHECK(has(text,
              "little room: row 2: less than 26.0 % of the fullest GPU is left, which an allocator may take where "
              "shapes vary\n"));
}

TEST_CASE("a row whose host may decide says how long its step takes launched kernel by kernel") {
    auto found = found_by_hand();
    CHECK_FALSE(has(answer(found), "kernel by kernel"));
    found.ranking.rows[2].flags_far = seconds(20);
    const auto text = answer(found);
    CHECK(has(text, "tied, to 20.00 s"));
    CHECK(has(text, "to: steps are of layers in CUDA graphs or few kernels; kernel by kernel they take up to so long"));
}

TEST_CASE("a row in the best layout as planned says where launch flags alone are faster") {
    auto found = found_by_hand();
    CHECK_FALSE(has(answer(found), "launch flags alone"));
    Row& first = found.ranking.rows[0];
    // What is told is the step that was judged as closely as the row's, not what the point was first judged to take.
    first.elsewhere = capacity::LaunchedElsewhere{.point = 1, .step = seconds(19)};
    CHECK(
        has(answer(found),
            "row 1 is in the best layout as planned; launch flags alone take 19.00 s in tp 4 cp 2 pp 4 dp 8 zero 1\n"));
    first.elsewhere->step = first.flags_step;
    CHECK_FALSE(has(answer(found), "launch flags alone"));
}

TEST_CASE("where no row meets what is asked the answer says which comes nearest, and has all rows") {
    auto found = found_by_hand();
    found.ranking.answers = {};
    found.ranking.none_meets = "no row meets the constraints; 256 x b200-sxm comes closest";
    const auto lines = lines_of(answer(found));

    CHECK(lines[3] == found.ranking.none_meets);
    CHECK(lines[5].starts_with("row  "));
    CHECK(lines[6].starts_with("  1  "));
    CHECK(lines[9].starts_with("  4  "));
}

TEST_CASE("where no layout runs the answer has the reasons") {
    auto found = found_by_hand();
    found.ranking.rows.clear();
    found.ranking.answers = {};
    const auto text = answer(found);

    CHECK(has(text, "no layout runs\n  512 x b200-sxm: the recipe is of another model\n"));
    CHECK(has(text, "  4 refused: memory: a GPU would hold 90 GiB\n"));
    CHECK_FALSE(has(text, "row"));
}

TEST_CASE("without prices GPU-hours decide, without tokens GPU time does, and the table has no column for the rest") {
    const auto priceless = answer(found_by_hand(false));
    CHECK(has(priceless, "\nfewest GPU-hours  "));
    CHECK(has(priceless, "GPU-hours over days\n"));
    CHECK(has(priceless, " = 21,702 GPU-hours\n"));
    CHECK_FALSE(has(priceless, "USD"));
    const auto rates = answer(found_by_hand(true, false));
    CHECK(has(rates, "\nleast GPU time  "));
    CHECK(has(rates, "row 1: 15,728,640 tokens a step / 16.00 s / 256 GPUs = 3,840 tokens/s a GPU\n"));
    CHECK(has(rates, "GPU-seconds a step over seconds a step\n"));
    CHECK_FALSE(has(rates, "days"));
}

TEST_CASE("only ten rows are shown, and how many more there are is said") {
    auto found = found_by_hand();
    found.ranking.rows.resize(14, found.ranking.rows[1]);
    const auto text = answer(found);

    CHECK(has(text, "4 more rows are in the tables and the report\n"));
    CHECK(count(text, "days missed\n") == 7);
}

TEST_CASE("the picture has the front by its numbers from left above to right below, others as dots, and limits") {
    auto found = found_by_hand();
    found.study.constraints.usd = 80'000;
    const auto lines = lines_of(capacity::show::pareto_text(found.study, found.ranking));

    REQUIRE(lines.size() == 20);
    CHECK(lines[0] == "      USD over days");
    std::vector<std::pair<std::size_t, std::size_t>> spots;  // column, line
    std::size_t dots = 0;
    for (const char digit : {'4', '3', '1'})
        for (std::size_t on = 1; on <= 16; ++on)
            if (const auto at = lines[on].find(digit, 11); at != std::string::npos) spots.emplace_back(at, on);
    for (std::size_t on = 1; on <= 16; ++on) {
        CHECK(lines[on].size() <= 81);
        CHECK_FALSE(lines[on].ends_with(' '));
        for (const char c : lines[on].substr(10)) dots += c == '.' ? 1 : 0;
    }
    REQUIRE(spots.size() == 3);
    CHECK(dots == 1);
    CHECK(spots[0].first < spots[1].first);
    CHECK(spots[1].first < spots[2].first);
    CHECK(spots[0].second < spots[1].second);
    CHECK(spots[1].second < spots[2].second);
    CHECK(count(capacity::show::pareto_text(found.study, found.ranking), ":") >= 15);
    CHECK(has(lines[19], "; : 5 days; - 80 k USD"));
}

TEST_CASE("numbers that fall together move apart, and a lone row is a picture, too") {
    auto found = found_by_hand();
    found.ranking.rows.resize(3, found.ranking.rows[0]);
    for (Row& row : found.ranking.rows) row = found.ranking.rows[0];
    const auto text = capacity::show::pareto_text(found.study, found.ranking);
    const auto lines = lines_of(text);
    std::string with_numbers;
    for (std::size_t on = 1; on <= 16; ++on)
        if (lines[on].size() > 11) with_numbers += lines[on].substr(11);
    CHECK(has(with_numbers, "1 2"));
    found.ranking.rows.resize(1);
    CHECK(has(capacity::show::pareto_text(found.study, found.ranking), "1"));
    found.ranking.rows.clear();
    CHECK(capacity::show::pareto_text(found.study, found.ranking).empty());
}

TEST_CASE("a scale holds its values with a margin, and its marks are round numbers on it") {
    using namespace capacity::show;
    for (const std::vector<double>& values :
         {std::vector<double>{3, 3.1, 3.5}, {7}, {1, 1000}, {0.02, 0.9, 44}, {64, 1024}, {1.5e6, 1.9e6}}) {
        const Scale scale = scale_over(values);
        for (const double value : values) {
            CAPTURE(value);
            CHECK(scale.part(value) > 0.01);
            CHECK(scale.part(value) < 0.99);
        }
        const auto marks = marks_on(scale, 6);
        CHECK(marks.size() >= 2);
        CHECK(marks.size() <= 13);
        for (const double mark : marks) {
            CHECK(scale.part(mark) >= -1e-6);
            CHECK(scale.part(mark) <= 1 + 1e-6);
        }
        CHECK(std::is_sorted(marks.begin(), marks.end()));
    }
    CHECK(scale_over({1, 1000}).part(31.6227766) == doctest::Approx(0.5));
    CHECK(mark_text(0.5) == "0.5");
    CHECK(mark_text(640) == "640");
    CHECK(mark_text(12'500) == "12.5 k");
    CHECK(mark_text(1.2e6) == "1.2 M");
}

TEST_CASE("a table of text is as wide as what it holds, and has no empty column") {
    TextTable table({{"name", true}, {"none"}, {"count"}});
    table.add({"a", "", "1,000"});
    table.add({"abcdef", "", "7"});

    CHECK(table.text() == "name    count\na       1,000\nabcdef      7\n");
}

TEST_CASE("a short row of a table of text runs on, and without headings there is no line of them") {
    TextTable table({{"", true}, {"", false, 4}, {""}});
    table.add({"a", "1", "2"});
    table.add({"abc", "why there are no numbers"});

    CHECK(table.text() == "a       1  2\nabc  why there are no numbers\n");
}

TEST_CASE("a device known by its peaks alone goes before a measured one only where its error cannot decide") {
    auto found = found_by_hand();
    const auto ranked = [&](bool modelled) {
        auto& rows = found.ranking.rows;
        rows.clear();
        for (const std::size_t cell : {1U, 2U, 3U}) {
            rows.push_back(row_of(found.study, found.results, cell));
            rows.back().modelled = modelled && cell > 1;
            if (rows.back().modelled) rows.back().error_percent = 50;
        }
        rank_rows(found.study, found.ranking);
    };
    const auto cell_of_answer = [&](const std::optional<std::size_t>& place) {
        return found.ranking.rows[place.value()].cell;
    };
    ranked(false);
    CHECK(cell_of_answer(found.ranking.answers.cheapest) == 2);  // a tenth less than cell 1
    CHECK(cell_of_answer(found.ranking.answers.fastest) == 3);

    ranked(true);
    CHECK(cell_of_answer(found.ranking.answers.cheapest) == 1);
    CHECK(cell_of_answer(found.ranking.answers.fastest) == 3);  // half as long: its error does not decide
    CHECK(has(answer(found), "modelled"));
}
