// A study of five cells with results and a ranking by hand.
//
//   cell   GPUs             step    tokens a second for each GPU
//   0      128 x h100-sxm   32 s    3,840
//   1      256 x h100-sxm   20 s    3,072    planned: 16 s, 3,840
//   2      128 x b200-sxm   15 s    8,192
//   3      256 x b200-sxm   10 s    6,144
//   4      512 x b200-sxm   cannot be asked
//
// A step has 15,728,640 tokens, so that 300 B of them take 19,074 steps.
#pragma once

#include "pipeweaver/capacity/ranking.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace pipeweaver::capacity_tests {

using namespace capacity;

struct Found {
    Study study;
    std::vector<CellResult> results;
    Ranking ranking;
};

inline Duration seconds(std::int64_t count) { return std::chrono::seconds(count); }

inline Cell cell_of(std::size_t number, const std::string& cluster, std::int64_t gpus, const std::string& price) {
    Cell cell{.number = number, .cluster = cluster, .gpus = gpus, .machine = {}, .asked = {}, .axes = {}, .key = {}};
    cell.machine = workloads::find_cluster(fmt::format("{}:{}", cluster, gpus));
    if (!price.empty()) cell.machine.price_per_gpu_hour = std::stod(price);
    cell.asked.set("model", "dip-vlm-m");
    cell.asked.set("batch", gpus == 128 ? "small.json" : "a, \"b\" & <c>.json");
    cell.asked.set("cluster", fmt::format("{}:{}", cluster, gpus));
    if (!price.empty()) cell.asked.set("price", price);
    cell.key = fmt::format("{:064x}", number);
    return cell;
}

inline Point judged(const emulator::Layout& layout, std::int64_t step) {
    Point point{.as = {layout, 1}, .status = PointStatus::judged, .bound = seconds(step) / 2, .step = seconds(step)};
    point.partition = "balanced";
    point.policy = "1f1b";
    point.recompute = "none";
    point.chunks = 2;
    point.memory = 60_GiB;
    return point;
}

// Two layouts that run, one that a bound hides and one that is refused.
inline CellResult result_of(const Cell& cell, std::int64_t step) {
    CellResult result{.cell = cell.number, .key = cell.key, .why_not = {}, .facts = {}, .points = {}};
    result.facts = {.samples = 512,
                    .microbatches = 256,
                    .tokens = 15'728'640,
                    .model_flops = 1e18,
                    .usable = 70_GiB,
                    .error_percent = cell.cluster == "b200-sxm" ? 12.0 : 4.0,
                    .footing = cell.cluster == "b200-sxm" ? "assumed" : "fitted"};
    result.points = {judged({.tp = 8, .pp = 2, .dp = cell.gpus / 16}, step + 4),
                     judged({.tp = 4, .pp = 4, .dp = cell.gpus / 32, .cp = 2}, step)};
    Point hidden{.as = {{.tp = 1, .pp = 8, .dp = cell.gpus / 8}, 2}, .status = PointStatus::bounded};
    hidden.bound = seconds(3 * step);
    Point refused{.as = {{.tp = 1, .pp = 1, .dp = cell.gpus}, 3}, .status = PointStatus::refused};
    refused.why = "memory: a GPU would hold 90 GiB";
    result.points.push_back(hidden);
    result.points.push_back(refused);
    return result;
}

inline Row row_of(const Study& study, const std::vector<CellResult>& results, std::size_t cell) {
    const CellResult& result = results[cell];
    Row row{.cell = cell, .point = 1, .flags_step = result.points[1].step};
    row.memory_left = 10_GiB;
    row.error_percent = result.facts.error_percent;
    row.command = fmt::format("pipeweaver plan --model dip-vlm-m --cluster {}:{} --tp 4 --batch 'a, \"b\" & <c>.json'",
                              study.cells[cell].cluster, study.cells[cell].gpus);
    row.pace = pace_of(study, study.cells[cell], result.facts, row.step());
    return row;
}

// Rows 1 to 4 are cells 1, 0, 2 and 3; without prices or tokens, too.
inline Found found_by_hand(bool with_prices = true, bool with_tokens = true) {
    Found found;
    Study& study = found.study;
    study.name = "what to rent <or buy>";
    study.sha256 = std::string(64, 'a');
    study.training_tokens = with_tokens ? 300'000'000'000 : 0;
    if (with_tokens) study.constraints.days = 5;
    const std::string h100 = with_prices ? "2.5" : "", b200 = with_prices ? "6" : "";
    study.cells = {cell_of(0, "h100-sxm", 128, h100), cell_of(1, "h100-sxm", 256, h100),
                   cell_of(2, "b200-sxm", 128, b200), cell_of(3, "b200-sxm", 256, b200),
                   cell_of(4, "b200-sxm", 512, b200)};
    const std::vector<std::int64_t> steps{32, 20, 15, 10};
    for (std::size_t i = 0; i < steps.size(); ++i) found.results.push_back(result_of(study.cells[i], steps[i]));
    found.results.push_back(
        {.cell = 4, .key = study.cells[4].key, .why_not = "the recipe is of another model", .facts = {}, .points = {}});
    Ranking& ranking = found.ranking;
    for (const std::size_t cell : {1U, 0U, 2U, 3U}) ranking.rows.push_back(row_of(study, found.results, cell));
    Row& first = ranking.rows[0];
    first.planned = Planned{.step = seconds(16),
                            .partition = "dealt",
                            .memory = 58_GiB,
                            .gap = 0.0125,
                            .exact = 0.5,
                            .interpolated = 0.25,
                            .extrapolated = 0.125,
                            .modelled = 0.125};
    first.memory_left = 12_GiB;
    first.pace = pace_of(study, study.cells[1], found.results[1].facts, first.step());
    first.on_front = ranking.rows[2].on_front = ranking.rows[3].on_front = true;
    ranking.rows[1].meets = false;
    ranking.rows[2].is_tied = ranking.rows[3].at_risk = true;
    ranking.rows[3].why_not_planned = "no schedule fits";
    ranking.answers = {.fewest = 2, .cheapest = 0, .fastest = 3};
    ranking.has_prices = with_prices && with_tokens;
    ranking.judged = 8;
    ranking.bounded = ranking.refused = 4;
    return found;
}

}  // namespace pipeweaver::capacity_tests
