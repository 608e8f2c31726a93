#include "pipeweaver/capacity/study.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/capacity/cell.hpp"
#include "pipeweaver/capacity/ranking.hpp"
#include "pipeweaver/capacity/recommend.hpp"
#include "pipeweaver/capacity/run.hpp"
#include "pipeweaver/capacity/support.hpp"
#include "pipeweaver/emulator/recipe.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::capacity;

namespace {

nlohmann::json document() {
    return {{"format", "pipeweaver-study/1"},
            {"name", "tiny"},
            {"tokens", "10B"},
            {"plan", {{"dataset", "vlm-mix"}}},
            {"axes",
             {{"model", "dip-vlm-s"}, {"cluster", {"h100-sxm", "h200-sxm"}}, {"gpus", {8, 16}}, {"global-batch", 16}}},
            {"layouts", {{"tp", {4, 8}}, {"cp", 1}}},
            {"prices", {{"h100-sxm", 2}, {"h200-sxm", 3}}},
            {"planned", 0}};
}

Study study_of(const nlohmann::json& json) { return read_study(JsonDocument("tiny.json", json.dump())); }

std::vector<CellResult> judged(const Study& study) { return capacity::whole(run_cells(study, {}, in_order, {})); }

}  // namespace

TEST_CASE("a study's cells are one choice of every axis, the last turning fastest") {
    const Study study = study_of(document());
    REQUIRE(study.cells.size() == 4);
    CHECK(study.training_tokens == 10'000'000'000);
    CHECK(study.cells[1].cluster == "h100-sxm");
    CHECK(study.cells[1].gpus == 16);
    CHECK(study.cells[2].cluster == "h200-sxm");
    CHECK(study.cells[1].asked.find("cluster")->text == "h100-sxm:16");
    CHECK(study.cells[1].axes == "cluster h100-sxm, gpus 16");
    CHECK(price_of(study.cells[0]) == 2);
    std::set<std::string> keys;
    for (const Cell& cell : study.cells) keys.insert(cell.key);
    CHECK(keys.size() == 4);
}

TEST_CASE("a cell's key is of what its points are a function of") {
    const Study study = study_of(document());
    auto changed = document();
    changed["prices"] = {{"h100-sxm", 9}};
    changed["planned"] = 5;
    CHECK(study_of(changed).cells[0].key == study.cells[0].key);
    CHECK(study_of(changed).sha256 != study.sha256);
    for (const auto& [key, value] : std::map<std::string, nlohmann::json>{
             {"shown", 5}, {"bounds", false}, {"constraints", {{"days", 3}}}, {"layouts", {{"tp", 4}, {"cp", 1}}}}) {
        changed = document();
        changed[key] = value;
        CHECK(study_of(changed).cells[0].key != study.cells[0].key);
    }
}

TEST_CASE("each cell is in one shard") {
    const Study study = study_of(document());
    for (std::size_t count = 1; count <= 5; ++count)
        for (const Cell& cell : study.cells) {
            std::size_t in = 0;
            for (std::size_t index = 0; index < count; ++index) in += Shard{index, count}.has(cell) ? 1 : 0;
            CHECK(in == 1);
        }
    CHECK(parse_shard("2/5").index == 2);
    CHECK(parse_shard("2/5").count == 5);
    for (const char* wrong : {"5/5", "-1/5", "1/0", "1", "/", "a/b"}) CHECK_THROWS_AS((void)parse_shard(wrong), Error);
}

TEST_CASE("a cell's points are those of its layout lists, and its file says them again") {
    const Study study = study_of(document());
    Shared shared;
    const auto result = judge_cell(study, study.cells[0], shared, in_order);
    REQUIRE(result);
    std::size_t judged = 0;
    for (const Point& point : result->points) {
        CHECK((point.as.layout.tp == 4 || point.as.layout.tp == 8));
        CHECK(point.as.layout.cp == 1);
        CHECK(point.as.layout.gpus() == 8);
        if (point.status != PointStatus::judged) continue;
        ++judged;
        CHECK(point.step >= point.bound);
        CHECK(point.memory <= result->facts.usable);
    }
    CHECK(judged > 0);
    CHECK(result->facts.samples == 16);
    CHECK(result->facts.tokens > 0);
    const std::string text = to_text(*result);
    CHECK(to_text(read_cell(study.cells[0], "cell", text)) == text);
    CHECK_THROWS_AS((void)read_cell(study.cells[1], "cell", text), Error);
    // The costs of layers that other cells share change nothing.
    Shared others;
    (void)judge_cell(study, study.cells[1], others, in_order);
    CHECK(to_text(*judge_cell(study, study.cells[0], others, in_order)) == text);
}

TEST_CASE("a row is the fastest point of its cell, and prices rank rows") {
    const Study study = study_of(document());
    const auto results = judged(study);
    const Ranking ranking = rank(study, results);
    REQUIRE(ranking.rows.size() == 4);
    CHECK(ranking.has_prices);
    for (std::size_t i = 0; i < ranking.rows.size(); ++i) {
        const Row& row = ranking.rows[i];
        for (const Point& point : results[row.cell].points)
            if (point.status == PointStatus::judged) CHECK(row.flags_step <= point.step);
        CHECK(row.meets);
        const auto& run = *row.pace.run;
        const double price = price_of(study.cells[row.cell]);
        CHECK(*run.usd == doctest::Approx(run.gpu_hours * price));
        CHECK(run.gpu_hours == doctest::Approx(run.days * 24 * static_cast<double>(study.cells[row.cell].gpus)));
        CHECK(row.command.starts_with("pipeweaver plan "));
        if (i > 0) CHECK(*ranking.rows[i - 1].pace.run->usd <= *run.usd);
    }
    CHECK(*ranking.answers.cheapest == 0);
    CHECK(study.cells[ranking.rows[*ranking.answers.fewest].cell].gpus == 8);
    for (const Row& row : ranking.rows)
        CHECK(ranking.rows[*ranking.answers.fastest].pace.run->days <= row.pace.run->days);
    CHECK(ranking.rows[0].on_front);
}

TEST_CASE("a cell may have its modules on GPUs of their own, shared ones, or whichever is faster") {
    auto json = document();
    json["axes"]["cluster"] = "h100-sxm";
    json["axes"]["gpus"] = 16;
    json["axes"]["groups"] = {"shared", "own", "auto"};
    json["prices"].erase("h200-sxm");
    json["shown"] = 1;
    const Study study = study_of(json);
    REQUIRE(study.cells.size() == 3);
    CHECK(study.cells[1].axes == "groups own");
    const auto results = judged(study);
    REQUIRE(results[1].points.size() == 1);
    const Point& own = results[1].points[0];
    REQUIRE(own.status == PointStatus::judged);
    CHECK(own.split->starts_with("vit="));
    CHECK(own.memory <= results[1].facts.usable);
    CHECK(results[2].points.size() == results[0].points.size() + 1);
    CHECK(to_text(read_cell(study.cells[1], "cell", to_text(results[1]))) == to_text(results[1]));
    std::array<Duration, 3> step_of{};
    for (const Row& row : rank(study, results).rows) {
        step_of[row.cell] = row.flags_step;
        const bool is_split = results[row.cell].points[row.point].split.has_value();
        CHECK(row.command.starts_with(is_split ? "pipeweaver groups " : "pipeweaver plan "));
        CHECK(is_split == (row.command.find(" --groups " + *own.split) != std::string::npos));
    }
    CHECK(step_of[1] == own.step);
    CHECK(step_of[2] == std::min(step_of[0], step_of[1]));
}

TEST_CASE("for a target with grids the split is one that they say") {
    auto json = document();
    json["axes"]["cluster"] = "h100-sxm";
    json["axes"]["gpus"] = 16;
    json["axes"]["groups"] = "own";
    json["prices"].erase("h200-sxm");
    json["plan"]["target"] = "megatron-mimo";
    const auto points = judged(study_of(json))[0].points;
    REQUIRE(points.size() == 1);
    CHECK(points[0].status == PointStatus::judged);
    const std::string& split = points[0].split.value();
    const std::string encoder = split.substr(0, split.find(','));
    CHECK(encoder.starts_with("vit="));
    CHECK(encoder.find(":pp1:") != std::string::npos);
    CHECK(encoder.ends_with(":zero1"));
    CHECK(split.ends_with(":zero1"));
}

TEST_CASE("what groups have not is a refused point that says why") {
    auto json = document();
    json["axes"]["cluster"] = "h100-sxm";
    json["axes"]["gpus"] = 8;
    json["axes"]["groups"] = "own";
    json["prices"].erase("h200-sxm");
    const auto why = [&] { return judged(study_of(json))[0].points.at(0).why; };
    json["plan"]["target"] = "torchtitan";
    CHECK(why() == "torchtitan launches no groups of GPUs");
    json["plan"] = {{"dataset", "vlm-mix"}, {"target", "torch-csv"}};
    CHECK(why() == "torch-csv launches no groups of GPUs");
    json["plan"] = {{"dataset", "vlm-mix"}, {"partition", "balanced"}};
    CHECK(why() == "groups of GPUs have no --partition");
    json["plan"] = {{"dataset", "vlm-mix"}, {"loader", "object-store"}};
    CHECK(why() == "groups of GPUs have no --loader");
    json["plan"] = {{"dataset", "constant-4096"}};
    CHECK(why() == "groups of GPUs: one module alone has work");
}

TEST_CASE("constraints leave the rows that meet them first, and say which are at risk") {
    auto json = document();
    const Ranking free = rank(study_of(json), judged(study_of(json)));
    const double days = free.rows[1].pace.run->days;
    json["constraints"] = {{"days", days * 1.001}};
    const Study study = study_of(json);
    const Ranking ranking = rank(study, judged(study));
    bool met = true;
    for (const Row& row : ranking.rows) {
        CHECK(row.meets == (row.pace.run->days <= days * 1.001));
        CHECK((met || !row.meets));
        met = row.meets;
        if (row.meets && row.pace.run->days > days * 0.999) CHECK(row.at_risk);
    }
}

TEST_CASE("where the host may decide the fastest point has its far end, which is at risk of what is asked") {
    auto json = document();
    json["plan"] = {{"dataset", "constant-1024"}};
    json["axes"] = {{"model", "llama3-8b"}, {"cluster", "h100-sxm"}, {"gpus", 8}, {"global-batch", 32}};
    json["layouts"] = {{"tp", 8}, {"cp", 1}, {"zero", 1}};
    json["prices"].erase("h200-sxm");
    const Study study = study_of(json);
    const auto results = judged(study);
    const Row row = rank(study, results).rows.at(0);
    REQUIRE(row.far());
    CHECK(to_text(read_cell(study.cells[0], "cell", to_text(results[0]))) == to_text(results[0]));
    json["constraints"] = {{"days", row.pace.run->days * 1.1}};  // its costs are off by less
    CHECK(rank(study_of(json), judged(study_of(json))).rows.at(0).at_risk);
    json.erase("constraints");
    // Launched so, it takes what the far end is so many times.
    json["plan"]["launched"] = "eager";
    const Row eager = rank(study_of(json), judged(study_of(json))).rows.at(0);
    CHECK(!eager.far());
    CHECK(static_cast<double>(row.far()->count()) == doctest::Approx(emulator::find_recipe("megatron-core-plain").far *
                                                                     static_cast<double>(eager.step().count())));
    json["plan"]["launched"] = "graphs";
    const Row graphs = rank(study_of(json), judged(study_of(json))).rows.at(0);
    CHECK(!graphs.far());
    CHECK(graphs.step() == row.step());
}

TEST_CASE("a row waits for its loader, and its days and its price have that and the cores") {
    auto json = document();
    json["axes"]["cluster"] = "h100-sxm";
    json["axes"]["gpus"] = 8;
    json["prices"].erase("h200-sxm");
    for (const char* workers : {"1", "64"})
        json["axes"]["loader"].push_back(std::string(R"({"format":"pipeweaver-loader/1","workers":)") + workers +
                                         R"(,"stages":[{"name":"decode","on":"core","image_ns":1000000000}]})");
    json["cores"] = {{"usd", 0.1}, {"included", 1}, {"node", 16}};
    const Study study = study_of(json);
    const auto results = judged(study);
    const Ranking ranking = rank(study, results);
    REQUIRE(ranking.rows.size() == 2);
    const Row &many = ranking.rows[0], &one = ranking.rows[1];  // the cheaper one is first
    REQUIRE((many.fed() != nullptr && one.fed() != nullptr));
    CHECK(one.fed()->why_not.empty());
    CHECK(one.fed()->decides == "decode");
    CHECK(one.fed()->waits > 10 * many.fed()->waits);
    CHECK(one.step() == one.flags_step + one.fed()->waits);
    CHECK(one.fed()->enough_workers.value_or(65) > 1);
    const auto replicas = [&](const Row& row) { return results[row.cell].points[row.point].as.layout.dp; };
    CHECK(one.fed()->cores == replicas(one));
    CHECK(one.cores_bought == 0);
    CHECK(many.fed()->cores == 64 * replicas(many));
    CHECK(many.cores_bought == (64 * replicas(many) - 8 + 15) / 16 * 16);
    const auto& run = *many.pace.run;
    CHECK(*run.usd ==
          doctest::Approx(2 * run.gpu_hours + 0.1 * 24 * run.days * static_cast<double>(many.cores_bought)));
    CHECK(run.days * 24 * 3.6e12 ==
          doctest::Approx(static_cast<double>(run.steps) * static_cast<double>(many.step().count())));
    // A loader that cannot be replayed ends no study.
    json["axes"]["loader"] = R"({"format":"pipeweaver-loader/1","workers":1,"window":1000000,)"
                             R"("stages":[{"name":"decode","on":"core","image_ns":1}]})";
    const Ranking none = rank(study_of(json), judged(study_of(json)));
    REQUIRE(none.rows.front().fed() != nullptr);
    CHECK(none.rows.front().fed()->why_not.find("too many to replay") != std::string::npos);
    CHECK(none.rows.front().step() == none.rows.front().flags_step);
    json["axes"].erase("loader");
    const Ranking alone = rank(study_of(json), judged(study_of(json)));
    CHECK(alone.rows.front().fed() == nullptr);
    CHECK(alone.rows.front().step() == one.flags_step);
}

TEST_CASE("what recommend asks is a study") {
    RecommendAsked asked;
    asked.gpus = "8-24";
    asked.clusters = "h100-sxm";
    asked.tokens = "1B";
    asked.days = 3;
    asked.prices = "h100-sxm=2.5";
    for (const auto& [name, text] :
         std::map<std::string, std::string>{{"model", "dip-vlm-s"}, {"dataset", "vlm-mix"}, {"global-batch", "16"}})
        asked.plan.set(name, text);
    const Study study = study_of(asked);
    std::vector<std::int64_t> gpus;
    for (const Cell& cell : study.cells) gpus.push_back(cell.gpus);
    CHECK(gpus == std::vector<std::int64_t>{8, 16, 24});
    CHECK(*study.constraints.days == 3);
    CHECK(price_of(study.cells[0]) == 2.5);
    asked.groups = "auto";
    CHECK(study_of(asked).cells[0].groups == GroupsAsked::either);
    asked.groups = "vit=8";
    CHECK_THROWS_WITH_AS((void)study_of(asked), doctest::Contains("--groups: is 'vit=8', must be one of"), Error);
    asked.groups.clear();
    asked.gpus = "24-8";
    CHECK_THROWS_AS((void)study_of(asked), Error);
    asked.gpus = "8";
    asked.cores = "usd=0.05,node=96";
    CHECK_THROWS_WITH_AS((void)study_of(asked), doctest::Contains("--cores: goes with --loader"), Error);
    asked.plan.set("loader", "disk");
    CHECK(study_of(asked).cores->node == 96);
    for (const char* const wrong :
         {"node=96", "usd=0.05,usd=1", "price=1", "usd=0.05,node=0.5", "usd=1001", "usd=0,included=1025"}) {
        CAPTURE(wrong);
        asked.cores = wrong;
        CHECK_THROWS_WITH_AS((void)study_of(asked), doctest::Contains("--cores: "), Error);
    }
    asked.cores.clear();
    asked.prices = "2.5";
    CHECK_THROWS_AS((void)study_of(asked), Error);
}

TEST_CASE("what an answer rests on adds up to the whole step") {
    const Support support = support_of({.model = "dip-vlm-s", .cluster = "h100-sxm"}, in_order);
    CHECK(support.dataset == "vlm-mix");
    CHECK(support.gpus >= 2);
    REQUIRE(support.shares.size() > 2);
    CHECK(support.shares[0].of_time == doctest::Approx(1));
    double sum = 0;
    for (std::size_t i = 1; i < support.shares.size(); ++i) {
        const BasisShares& row = support.shares[i];
        CHECK(row.of_time == doctest::Approx(row.measured + row.transferred + row.modelled));
        sum += row.of_time;
    }
    CHECK(sum == doctest::Approx(1));
    CHECK_THROWS_AS((void)support_of({.model = "dip-vlm-s", .cluster = "h100-sxm:1"}, in_order), Error);
}
