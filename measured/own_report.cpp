// A run of one's own beside its prediction, as text and JSON.
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/or_null.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/measured/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipeweaver::measured {

namespace {

std::string own_error(std::int64_t predicted, std::int64_t measured) {
    return fmt::format("{:+.1f} %", 100 * error_of(predicted, measured));
}

std::string own_share(std::int64_t part, std::int64_t whole) {
    return percent(static_cast<double>(part) / static_cast<double>(whole));
}

std::string own_name(const OwnPart& part) {
    return part.module.empty() ? part.what : fmt::format("{} of {}", part.what, part.module);
}

// Shares below half a per mille are shown in the JSON answer alone.
bool is_worth_showing(std::int64_t part, std::int64_t whole) {
    return 2000 * static_cast<double>(part) >= static_cast<double>(whole);
}

std::string explained_at(const OwnPart& part) {
    return part.times ? fmt::format("x{:.3f}", *part.times) : "no: it would be less than nothing";
}

std::string own_figures(const OwnRunReport& report) {
    TextTable table({{"", true, 24}, {"predicted", false, 12}, {"measured", false, 12}, {"error", false, 10}}, 1);
    table.add({"step", human(report.predicted), human(report.measured),
               own_error(report.predicted.count(), report.measured.count())});
    const auto memory = fmt::format("memory, {}", name_of(report.memory_kind));
    if (report.measured_peak)
        table.add({memory, human(report.peak), human(*report.measured_peak),
                   own_error(report.peak.count, report.measured_peak->count)});
    else
        table.add({memory, human(report.peak), "", ""});
    return table.text();
}

// What is predicted of each part, and which alone would explain the difference.
TextTable parts_table(const char* of) {
    return TextTable(
        {{of, true, 52}, {"predicted", false, 12}, {"of it", false, 8}, {" explains the difference alone at", true}},
        1);
}

std::string own_parts(const OwnRunReport& report) {
    TextTable path = parts_table("the path that decides the step"), rank = parts_table("an average rank");
    for (const OwnPart& part : report.parts)
        if (is_worth_showing(part.predicted, report.predicted.count()))
            path.add({own_name(part), human(Duration{part.predicted}),
                      own_share(part.predicted, report.predicted.count()), " " + explained_at(part)});
    for (const RankShare& one : report.ranks)
        rank.add({one.what, human(one.time), own_share(one.time.count(), report.predicted.count()), ""});
    return "\n" + path.text() + "\n" + rank.text();
}

std::string own_memory(const OwnRunReport& report) {
    if (!report.measured_peak) return {};
    TextTable table = parts_table("memory of the fullest GPU, allocated");
    for (const OwnPart& part : report.memory)
        table.add({part.what, human(Bytes{part.predicted}), own_share(part.predicted, report.peak.count),
                   " " + explained_at(part)});
    return "\n" + table.text();
}

std::string own_support(const OwnRunReport& report) {
    TextTable table({{"", true, 13}, {"", true, 12}, {"", false, 8}}, 1);
    for (const Support& one : report.support)
        table.add({std::string(name_of(one.basis)), std::string(name_of(one.kind)), percent(one.share)});
    return "\nbusy time by what it rests on, the weakest first\n" + table.text();
}

nlohmann::ordered_json parts_json(const std::vector<OwnPart>& parts, const char* amount) {
    auto list = nlohmann::ordered_json::array();
    for (const OwnPart& part : parts) {
        nlohmann::ordered_json json{{"part", part.what}};
        json["module"] = or_null(part.module);
        json[amount] = part.predicted;
        json["explains_at"] = or_null(part.times);
        list.push_back(std::move(json));
    }
    return list;
}

}  // namespace

std::string own_run_text(const OwnRunReport& report, const std::vector<std::string>& assumed) {
    std::string text = own_figures(report) + own_parts(report) + own_memory(report) + own_support(report);
    for (const std::string& sentence : assumed) text += fmt::format("assumed: {}\n", sentence);
    return text;
}

nlohmann::ordered_json own_run_json(const OwnRunReport& report, const std::vector<std::string>& assumed) {
    nlohmann::ordered_json json{
        {"format", "pipeweaver-own-run/1"},
        {"step", {{"predicted_ns", report.predicted.count()}, {"measured_ns", report.measured.count()}}}};
    json["step"]["error"] = error_of(report.predicted.count(), report.measured.count());
    json["parts"] = parts_json(report.parts, "time_ns");
    for (const RankShare& one : report.ranks)
        json["average_rank"].push_back({{"part", one.what}, {"time_ns", one.time.count()}});
    json["memory"] = {{"kind", name_of(report.memory_kind)}, {"predicted_bytes", report.peak.count}};
    const bool has_memory = report.measured_peak.has_value();
    json["memory"]["measured_bytes"] =
        has_memory ? nlohmann::ordered_json(report.measured_peak->count) : nlohmann::ordered_json();
    json["memory"]["error"] = has_memory
                                  ? nlohmann::ordered_json(error_of(report.peak.count, report.measured_peak->count))
                                  : nlohmann::ordered_json();
    json["memory"]["parts"] = parts_json(report.memory, "bytes");
    json["support"] = nlohmann::ordered_json::array();
    for (const Support& one : report.support)
        json["support"].push_back(
            {{"basis", name_of(one.basis)}, {"operators", name_of(one.kind)}, {"share", one.share}});
    json["assumed"] = assumed;
    return json;
}

}  // namespace pipeweaver::measured
