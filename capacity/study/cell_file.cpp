// A cell's result as a file: "pipeweaver-cell/1".
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/capacity/cell.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>

namespace pipeweaver::capacity {

namespace {

using nlohmann::ordered_json;

ordered_json as_json(const Point& point) {
    ordered_json json = layout_json(point.as);
    json["status"] = name_of(point.status);
    if (point.split) json["split"] = *point.split;
    if (point.bound > Duration{}) json["bound_ns"] = point.bound.count();
    if (point.status == PointStatus::refused) json["why"] = point.why;
    if (point.status != PointStatus::judged) return json;
    json["step_ns"] = point.step.count();
    if (point.far) json["far_ns"] = point.far->count();
    json["partition"] = point.partition;
    json["chunks"] = point.chunks;
    json["policy"] = point.policy;
    json["recompute"] = point.recompute;
    json["memory_bytes"] = point.memory.count;
    return json;
}

PointStatus status_of(const std::string& name) {
    for (const PointStatus one : {PointStatus::judged, PointStatus::bounded, PointStatus::refused})
        if (name_of(one) == name) return one;
    return PointStatus::refused;
}

Point read_point(const Json& json) {
    constexpr std::int64_t most = 1'000'000;
    Point point;
    emulator::Layout& in = point.as.layout;
    const auto degree = [&](std::string_view key) { return json.at(key).integer(1, most); };
    in.tp = degree("tp");
    in.cp = degree("cp");
    in.pp = degree("pp");
    in.dp = degree("dp");
    in.ep = degree("ep");
    point.as.zero = static_cast<int>(json.at("zero").integer(0, 3));
    point.status = status_of(json.at("status").one_of({"judged", "bounded", "refused"}));
    if (const auto split = json.find("split")) point.split = split->text();
    if (const auto bound = json.find("bound_ns")) point.bound = Duration{bound->integer()};
    if (point.status == PointStatus::refused) point.why = json.at("why").text();
    if (point.status != PointStatus::judged) return point;
    point.step = Duration{json.at("step_ns").integer(1)};
    if (const auto far = json.find("far_ns")) point.far = Duration{far->integer(1)};
    point.partition = json.at("partition").text();
    point.chunks = degree("chunks");
    point.policy = json.at("policy").text();
    point.recompute = json.at("recompute").text();
    point.memory = Bytes{json.at("memory_bytes").integer()};
    return point;
}

ordered_json as_json(const CellFacts& facts) {
    return {{"samples", facts.samples},
            {"microbatches", facts.microbatches},
            {"tokens", facts.tokens},
            {"model_flops", facts.model_flops},
            {"usable_bytes", facts.usable.count},
            {"error_percent", facts.error_percent},
            {"footing", facts.footing}};
}

CellFacts read_facts(const Json& json) {
    constexpr double most_flops = 1e30, most_percent = 1000;
    CellFacts facts;
    facts.samples = json.at("samples").integer();
    facts.microbatches = json.at("microbatches").integer();
    facts.tokens = json.at("tokens").integer();
    facts.model_flops = json.at("model_flops").number(0, most_flops);
    facts.usable = Bytes{json.at("usable_bytes").integer()};
    facts.error_percent = json.at("error_percent").number(0, most_percent);
    facts.footing = json.at("footing").text();
    return facts;
}

}  // namespace

std::array<std::int64_t, 6> degrees_of(const planner::LayoutAndZero& as) {
    const emulator::Layout& in = as.layout;
    return {in.tp, in.cp, in.pp, in.dp, in.ep, as.zero};
}

ordered_json layout_json(const planner::LayoutAndZero& as) {
    ordered_json json;
    const auto degrees = degrees_of(as);
    for (std::size_t i = 0; i < degrees.size(); ++i) json[std::string(degree_names[i])] = degrees[i];
    return json;
}

std::string file_name(const Cell& cell) {
    constexpr std::size_t digits = 32;
    return cell.key.substr(0, digits) + ".json";
}

std::string to_text(const CellResult& result) {
    ordered_json json{{"format", "pipeweaver-cell/1"}, {"key", result.key}};
    if (!result.why_not.empty()) {
        json["why_not"] = result.why_not;
    } else {
        json["facts"] = as_json(result.facts);
        json["points"] = ordered_json::array();
        for (const Point& point : result.points) json["points"].push_back(as_json(point));
    }
    return json.dump() + "\n";
}

CellResult read_cell(const Cell& cell, const std::string& name, std::string_view text) {
    const JsonDocument document(name, text);
    document.require_format("pipeweaver-cell", 1);
    const Json root = document.root();
    CellResult result;
    result.cell = cell.number;
    result.key = root.at("key").text();
    if (result.key != cell.key)
        root.at("key").fail("is of another study, of other files or of another version: allowed are cells of this one");
    if (const auto why = root.find("why_not")) {
        result.why_not = why->text();
        return result;
    }
    result.facts = read_facts(root.at("facts"));
    const auto points = root.at("points").elements();
    result.points.reserve(points.size());
    for (const Json& point : points) result.points.push_back(read_point(point));
    return result;
}

}  // namespace pipeweaver::capacity
