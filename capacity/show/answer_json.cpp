// The answer for programs.
#include "capacity/show/words.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/capacity/answer.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::capacity {

namespace show {

namespace {

using Writer = nlohmann::ordered_json;

Writer answers_json(const Ranking& ranking) {
    const auto place = [](const std::optional<std::size_t>& row) { return row ? Writer(*row + 1) : Writer(nullptr); };
    return {{"fewest", place(ranking.answers.fewest)},
            {"cheapest", place(ranking.answers.cheapest)},
            {"fastest", place(ranking.answers.fastest)}};
}

// What the step rests on: how runs like it are off, and of a planned row the parts of its busy time by their costs.
Writer basis_json(const Row& row, const CellFacts& facts) {
    Writer json{{"footing", facts.footing}};
    if (!row.planned) return json;
    json["exact"] = row.planned->exact;
    json["interpolated"] = row.planned->interpolated;
    json["extrapolated"] = row.planned->extrapolated;
    json["modelled"] = row.planned->modelled;
    return json;
}

void add_run(Writer& json, const std::optional<planner::TrainingCost>& run) {
    json["days"] = run ? Writer(run->days) : Writer(nullptr);
    json["gpu_hours"] = run ? Writer(run->gpu_hours) : Writer(nullptr);
    json["usd"] = or_null(run ? run->usd : std::nullopt);
    json["kwh"] = or_null(run ? run->kwh : std::nullopt);
}

Writer options_json(const Cell& cell, const std::vector<std::string>& options) {
    Writer json = Writer::object();
    for (const std::string& name : options) json[name] = value_of(cell, name);
    return json;
}

// The schedule that launch flags say.
Writer schedule_json(const Point& point) {
    return {{"partition", point.partition},
            {"chunks", point.chunks},
            {"policy", point.policy},
            {"recompute", point.recompute}};
}

Writer faults_json(const FaultColumns& of) {
    return {{"usable_gpus", of.usable_gpus},
            {"wasted_share", of.wasted_share},
            {"job_gpus", of.job_gpus},
            {"spares", or_null(of.spares)},
            {"usd_per_gpu", or_null(of.usd_per_gpu)},
            {"usd_of_a_usable", or_null(of.usd_of_a_usable)}};
}

Writer input_json(const Cell& cell, const Row& row) {
    const RowInput& input = *row.fed();
    if (!input.why_not.empty()) return {{"why_not", input.why_not}};
    return {{"waits_ns", input.waits.count()},
            {"usd_waited_a_step", or_null(usd_waited(cell, row))},
            {"decides", input.decides.empty() ? Writer(nullptr) : Writer(input.decides)},
            {"enough_workers", or_null(input.enough_workers)},
            {"cores", input.cores},
            {"cores_bought", row.cores_bought},
            {"usd_of_cores", row.usd_of_cores}};
}

Writer row_json(const FoundStudy& found, std::size_t place) {
    const Row& row = found.row(place);
    const Cell& cell = found.cell(row);
    const Point& point = found.point(row);
    Writer json{{"row", place + 1},
                {"cell", cell.number},
                {"model", value_of(cell, "model")},
                {"cluster", cell.cluster},
                {"gpus", cell.gpus},
                {"options", options_json(cell, found.options)},
                {"layout", point.split ? Writer(nullptr) : layout_json(point.as)},
                {"split", or_null(point.split)},
                {"step_ns", row.step().count()},
                {"flags_step_ns", row.flags_step.count()},
                {"flags_schedule", schedule_json(point)},
                {"planned", row.planned.has_value()}};
    if (const auto far = row.far()) json["step_range_ns"] = {row.step().count(), far->count()};
    if (row.planned) json["planned_partition"] = row.planned->partition;
    if (row.planned) json["gap"] = row.planned->gap;
    if (!row.why_not_planned.empty()) json["why_not_planned"] = row.why_not_planned;
    add_run(json, row.pace.run);
    json["mfu"] = row.pace.mfu;
    json["tokens_per_second_per_gpu"] = row.pace.tokens_per_second_per_gpu;
    json["samples_per_second"] = row.pace.samples_per_second;
    json["tflops_per_gpu"] = row.pace.tflops_per_gpu;
    json["memory_bytes"] = (row.planned ? row.planned->memory : point.memory).count;
    json["memory_left_bytes"] = row.memory_left.count;
    json["little_room"] = has_little_room(found, row);
    json["error_percent"] = row.error_percent;
    json["basis"] = basis_json(row, found.results[row.cell].facts);
    if (row.fed() != nullptr) json["input"] = input_json(cell, row);
    if (row.faults) json["faults"] = faults_json(*row.faults);
    json["meets"] = row.meets;
    json["at_risk"] = row.at_risk;
    json["on_front"] = row.on_front;
    json["tied"] = row.is_tied;
    json["command"] = row.command;
    return json;
}

}  // namespace

}  // namespace show

nlohmann::ordered_json answer_json(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking) {
    using namespace show;
    Writer json{{"format", "pipeweaver-capacity/1"},
                {"study", title_of(study)},
                {"sha256", study.sha256},
                {"tokens", study.training_tokens > 0 ? Writer(study.training_tokens) : Writer(nullptr)},
                {"most_days", or_null(study.constraints.days)},
                {"most_usd", or_null(study.constraints.usd)},
                {"points", {{"judged", ranking.judged}, {"bounded", ranking.bounded}, {"refused", ranking.refused}}},
                {"answers", answers_json(ranking)}};
    if (!ranking.none_meets.empty()) json["none_meets"] = ranking.none_meets;
    const FoundStudy found(study, results, ranking);
    json["rows"] = Writer::array();
    for (std::size_t i = 0; i < ranking.rows.size(); ++i) json["rows"].push_back(row_json(found, i));
    for (const CellResult& result : results)
        if (!result.why_not.empty())
            json["cells_not_asked"].push_back({{"cell", study.cells[result.cell].number}, {"why", result.why_not}});
    return json;
}

}  // namespace pipeweaver::capacity
