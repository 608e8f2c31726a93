// The tables of a study, and its answer for programs.
#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/capacity/answer.hpp"
#include "tests/capacity/hand_made_study.hpp"
#include "tests/support/parts_of_text.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::capacity_tests;

namespace {

std::string at(const CsvTable& table, std::size_t row, std::string_view column) {
    return std::string(table.text(row, table.column(column)));
}

double number_at(const CsvTable& table, std::size_t row, std::string_view column) {
    return table.number(row, table.column(column), -1e12, 1e12);
}

}  // namespace

TEST_CASE("the table of points has each point of each cell, and says of a cell that cannot be asked why") {
    const auto found = found_by_hand();
    const CsvTable table("results.csv", capacity::results_csv(found.study, found.results));

    REQUIRE(table.rows() == 17);
    CHECK(at(table, 0, "status") == "judged");
    CHECK(at(table, 1, "cluster") == "h100-sxm");
    CHECK(at(table, 1, "tp") == "4");
    CHECK(at(table, 1, "cp") == "2");
    CHECK(at(table, 1, "bound_s") == "16.000000000");
    CHECK(at(table, 1, "step_s") == "32.000000000");
    CHECK(at(table, 1, "memory_gib") == "60.000");
    CHECK(at(table, 1, "memory_left_gib") == "10.000");
    CHECK(at(table, 1, "tokens_per_s_per_gpu") == "3840.000");
    CHECK(at(table, 1, "samples_per_s") == "16.000");
    CHECK(number_at(table, 1, "days") == doctest::Approx(19'074 * 32.0 / 86'400));
    CHECK(number_at(table, 1, "usd") == doctest::Approx(19'074 * 32.0 / 3'600 * 128 * 2.5));
    CHECK(at(table, 2, "status") == "bounded");
    CHECK(at(table, 2, "bound_s") == "96.000000000");
    CHECK(at(table, 2, "step_s").empty());
    CHECK(at(table, 3, "status") == "refused");
    CHECK(at(table, 3, "bound_s").empty());
    CHECK(at(table, 3, "why") == "memory: a GPU would hold 90 GiB");
    CHECK(at(table, 16, "why") == "the recipe is of another model");
    CHECK(at(table, 16, "tp").empty());
    CHECK(at(table, 16, "gpus") == "512");
}

TEST_CASE("texts of any kind come back from the table of points, and varying options have a column each") {
    const auto found = found_by_hand();
    const CsvTable table("results.csv", capacity::results_csv(found.study, found.results));

    CHECK(at(table, 0, "batch") == "small.json");
    CHECK(at(table, 4, "batch") == "a, \"b\" & <c>.json");
    CHECK(at(table, 4, "model") == "dip-vlm-m");
    CHECK_FALSE(table.find("price"));
    CHECK(at(table, 15, "price_per_gpu_hour") == "6.0000");
}

TEST_CASE("results that were files in between make the same table, byte for byte") {
    const auto found = found_by_hand();
    std::vector<CellResult> read;
    for (const CellResult& result : found.results)
        read.push_back(capacity::read_cell(found.study.cells[result.cell], "cell.json", capacity::to_text(result)));

    CHECK(capacity::results_csv(found.study, read) == capacity::results_csv(found.study, found.results));
}

TEST_CASE("without prices and tokens the tables have no days and no USD") {
    const auto found = found_by_hand(false, false);
    const CsvTable points("results.csv", capacity::results_csv(found.study, found.results));
    const CsvTable rows("rows.csv", capacity::rows_csv(found.study, found.results, found.ranking));

    for (const std::string_view column : {"price_per_gpu_hour", "days", "gpu_hours", "usd", "kwh"}) {
        CAPTURE(column);
        CHECK(at(points, 0, column).empty());
        CHECK(at(rows, 0, column).empty());
    }
    CHECK(at(rows, 0, "tokens_per_s_per_gpu") == "3840.000");
}

TEST_CASE("the table of rows has their places, answers, steps and commands") {
    auto found = found_by_hand();
    found.ranking.answers = {.fewest = 2, .cheapest = 0, .fastest = 2};
    found.ranking.rows[1].input = capacity::RowInput{.waits = seconds(5), .cores = 1'280};
    const CsvTable table("rows.csv", capacity::rows_csv(found.study, found.results, found.ranking));

    REQUIRE(table.rows() == 4);
    CHECK(at(table, 0, "place") == "1");
    CHECK(at(table, 0, "answer") == "cheapest");
    CHECK(at(table, 1, "answer").empty());
    CHECK(at(table, 2, "answer") == "fewest+fastest");
    CHECK(at(table, 0, "meets") == "yes");
    CHECK(at(table, 1, "meets") == "no");
    CHECK(at(table, 2, "tied") == "yes");
    CHECK(at(table, 3, "at_risk") == "yes");
    CHECK(at(table, 0, "flags_step_s") == "20.000000000");
    CHECK(at(table, 0, "planned_step_s") == "16.000000000");
    CHECK(at(table, 0, "gap") == "0.01250");
    CHECK(at(table, 0, "exact") == "0.50000");
    CHECK(at(table, 0, "memory_gib") == "58.000");
    CHECK(at(table, 0, "memory_left_gib") == "12.000");
    CHECK(at(table, 1, "planned_step_s").empty());
    CHECK(at(table, 1, "memory_gib") == "60.000");
    CHECK(at(table, 1, "waits_s") == "5.000000000");
    CHECK(at(table, 1, "loader_cores") == "1280");
    CHECK(at(table, 1, "cores_bought") == "0");
    CHECK(at(table, 0, "waits_s").empty());
    CHECK(at(table, 3, "why_not_planned") == "no schedule fits");
    CHECK(at(table, 3, "footing") == "assumed");
    for (std::size_t i = 0; i < 4; ++i) CHECK(at(table, i, "command") == found.ranking.rows[i].command);
}

TEST_CASE("a row in groups of GPUs has its split in place of a layout") {
    auto found = found_by_hand();
    CHECK(at(CsvTable("rows.csv", capacity::rows_csv(found.study, found.results, found.ranking)), 0, "split").empty());
    found.study.cells[1].groups = capacity::GroupsAsked::either;
    found.results[1].points[1].split = "vit=16:tp1:pp1:dp16,llm=240:tp8:pp2:dp15";
    const CsvTable rows("rows.csv", capacity::rows_csv(found.study, found.results, found.ranking));
    CHECK(at(rows, 0, "split") == "vit=16:tp1:pp1:dp16,llm=240:tp8:pp2:dp15");
    CHECK(at(rows, 0, "tp").empty());
    CHECK(at(rows, 0, "groups") == "auto");
    CHECK(at(rows, 1, "groups") == "shared");
    const auto json = capacity::answer_json(found.study, found.results, found.ranking)["rows"];
    CHECK(json[0]["layout"].is_null());
    CHECK(json[0]["split"] == "vit=16:tp1:pp1:dp16,llm=240:tp8:pp2:dp15");
    CHECK(json[1]["split"].is_null());
    const std::string in_groups = "groups vit=16,llm=240";
    CHECK(capacity::answer_text(found.study, found.results, found.ranking).find(in_groups) != std::string::npos);
    CHECK(capacity::report_html(found.study, found.results, found.ranking).find(in_groups) != std::string::npos);
}

TEST_CASE("the answer for programs has every row with its figures, its basis and its command") {
    const auto found = found_by_hand();
    const auto json = capacity::answer_json(found.study, found.results, found.ranking);

    CHECK(json.at("format") == "pipeweaver-capacity/1");
    CHECK(json.at("answers") == nlohmann::ordered_json{{"fewest", 3}, {"cheapest", 1}, {"fastest", 4}});
    CHECK(json.at("points").at("bounded") == 4);
    CHECK(json.at("most_days") == 5.0);
    CHECK(json.at("most_usd").is_null());
    CHECK_FALSE(json.contains("none_meets"));
    CHECK(json.at("cells_not_asked").at(0).at("cell") == 4);
    REQUIRE(json.at("rows").size() == 4);
    const auto& first = json.at("rows").at(0);
    CHECK(first.at("step_ns") == 16'000'000'000);
    CHECK_FALSE(first.contains("step_range_ns"));
    CHECK(first.at("flags_step_ns") == 20'000'000'000);
    CHECK(first.at("layout").at("pp") == 4);
    CHECK(first.at("options").at("batch") == "a, \"b\" & <c>.json");
    CHECK(first.at("usd").get<double>() == doctest::Approx(19'074 * 16.0 / 3'600 * 256 * 2.5));
    CHECK(first.at("memory_left_bytes") == (12_GiB).count);
    CHECK(first.at("little_room") == false);
    CHECK(json.at("rows").at(1).at("little_room") == true);
    CHECK(first.at("basis").at("footing") == "fitted");
    CHECK(first.at("basis").at("modelled") == 0.125);
    CHECK(json.at("rows").at(2).at("tied") == true);
    CHECK(json.at("rows").at(3).at("at_risk") == true);
    CHECK(json.at("rows").at(3).at("error_percent") == 12.0);
    CHECK_FALSE(json.at("rows").at(3).at("basis").contains("exact"));
    CHECK(json.at("rows").at(3).at("command") == found.ranking.rows[3].command);
}

TEST_CASE("a row whose host may decide has both ends of the step that it answers with") {
    auto found = found_by_hand();
    found.ranking.rows[0].flags_far = seconds(28);  // it is planned, and answers with that
    found.ranking.rows[0].planned->far = seconds(24);
    found.ranking.rows[2].flags_far = seconds(20);
    found.ranking.rows[3].flags_far = seconds(9);  // no end: its step takes longer
    const auto json = capacity::answer_json(found.study, found.results, found.ranking);
    CHECK(json.at("rows").at(0).at("step_range_ns") == nlohmann::ordered_json{16'000'000'000, 24'000'000'000});
    CHECK(json.at("rows").at(2).at("step_range_ns") == nlohmann::ordered_json{15'000'000'000, 20'000'000'000});
    for (const std::size_t row : {1U, 3U}) CHECK_FALSE(json.at("rows").at(row).contains("step_range_ns"));
    const CsvTable table("rows.csv", capacity::rows_csv(found.study, found.results, found.ranking));
    CHECK(at(table, 0, "far_step_s") == "24.000000000");
    CHECK(at(table, 1, "far_step_s").empty());
}

TEST_CASE("the answer for programs has null where there is no price and no run") {
    const auto found = found_by_hand(false, false);
    const auto json = capacity::answer_json(found.study, found.results, found.ranking);

    for (const std::string key : {"days", "gpu_hours", "usd", "kwh"}) CHECK(json.at("rows").at(0).at(key).is_null());
    CHECK(json.at("tokens").is_null());
}
