#include "capacity/show/words.hpp"

#include "capacity/show/pareto.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace pipeweaver::capacity::show {

using planner::with_commas;

namespace {

constexpr std::string_view groups_option = "groups";  // an axis of studies, no option of `plan`

std::string cheapest_name(const Study& study, const Ranking& ranking) {
    if (ranking.has_prices) return "cheapest";
    return study.training_tokens > 0 ? "fewest GPU-hours" : "least GPU time";
}

// "vit=16,llm=112" of "vit=16:tp1:pp1,llm=112:tp8:pp2".
std::string without_degrees(const std::string& split) {
    std::string text;
    bool is_degree = false;
    for (const char c : split) {
        if (c == ':') is_degree = true;
        if (c == ',') is_degree = false;
        if (!is_degree) text += c;
    }
    return text;
}

}  // namespace

FoundStudy::FoundStudy(const Study& of, const std::vector<CellResult>& its_results, const Ranking& its_ranking)
    : study(of),
      results(its_results),
      ranking(its_ranking),
      options(varying_options(of)),
      clusters(each_once(of, [](const Cell& cell) { return cell.cluster; })) {}

std::string layout_text(const Point& point) {
    if (point.split) return "groups " + without_degrees(*point.split);
    const auto degrees = degrees_of(point.as);
    std::string text;
    for (std::size_t i = 0; i < degrees.size(); ++i) {
        const bool is_left_out = (degree_names[i] == "cp" || degree_names[i] == "ep") && degrees[i] == 1;
        if (!is_left_out) text += fmt::format("{}{} {}", text.empty() ? "" : " ", degree_names[i], degrees[i]);
    }
    return text;
}

std::vector<std::string> varying_options(const Study& study) {
    std::vector<std::string> names;
    if (study.cells.empty()) return names;
    const Cell& first = study.cells.front();
    for (const auto& value : first.asked.all()) {
        if (value.name == "cluster" || value.name == "price") continue;
        const bool differs = std::any_of(study.cells.begin(), study.cells.end(),
                                         [&](const Cell& cell) { return value_of(cell, value.name) != value.text; });
        if (differs) names.push_back(value.name);
    }
    if (std::any_of(study.cells.begin(), study.cells.end(),
                    [&](const Cell& cell) { return cell.groups != first.groups; }))
        names.emplace_back(groups_option);
    return names;
}

std::string value_of(const Cell& cell, std::string_view option) {
    if (option == groups_option) return std::string(name_of(cell.groups));
    const auto* value = cell.asked.find(option);
    return value == nullptr ? std::string() : value->text;
}

std::string options_text(const Cell& cell, const std::vector<std::string>& options) {
    return joined(options, ", ",
                  [&](const std::string& name) { return fmt::format("{} {}", name, value_of(cell, name)); });
}

std::string gpus_text(const Cell& cell) { return fmt::format("{} x {}", cell.gpus, cell.cluster); }

std::vector<std::string_view> answer_keys_of(const Ranking& ranking, std::size_t row) {
    std::vector<std::string_view> keys;
    if (ranking.answers.fewest == row) keys.emplace_back("fewest");
    if (ranking.answers.cheapest == row) keys.emplace_back("cheapest");
    if (ranking.answers.fastest == row) keys.emplace_back("fastest");
    return keys;
}

std::string answers_text(const FoundStudy& found, std::size_t row) {
    std::vector<std::string> names;
    for (const std::string_view key : answer_keys_of(found.ranking, row))
        names.push_back(key == "fewest"     ? "fewest GPUs"
                        : key == "cheapest" ? cheapest_name(found.study, found.ranking)
                                            : std::string(key));
    return joined(names, ", ");
}

std::string notes_of(const Study& study, const Row& row) {
    std::vector<std::string> notes;
    if (row.is_tied) notes.emplace_back("tied");
    if (row.at_risk) notes.emplace_back("at risk");
    if (const auto far = row.far()) notes.push_back("to " + human(*far));
    if (row.modelled) notes.emplace_back("modelled");
    if (study.cells[row.cell].asked.find("anchor") != nullptr) notes.emplace_back("anchored");
    const Constraints& limits = study.constraints;
    if (row.pace.run && limits.days && row.pace.run->days > *limits.days) notes.emplace_back("days missed");
    if (row.pace.run && limits.usd && row.pace.run->usd.value_or(0) > *limits.usd) notes.emplace_back("USD missed");
    return joined(notes, ", ");
}

namespace {

std::string commas_or_none(const std::optional<double>& number) { return number ? with_commas(*number) : ""; }

std::string answers_fact(const FoundRow& of) { return answers_text(of.found, of.place); }

// What feeds the row's GPUs, where that is known.
const RowInput* fed(const FoundRow& of) {
    const RowInput* const input = of.row.fed();
    return input != nullptr && input->why_not.empty() ? input : nullptr;
}

using RowOf = FoundRow;
constexpr auto nowhere = RowFact::nowhere;

constexpr std::array all_row_facts{
    RowFact{"", nowhere, true, answers_fact},
    RowFact{"row", "row", false, [](const RowOf& of) { return std::to_string(of.place + 1); }},
    RowFact{nowhere, "answers", true, answers_fact},
    RowFact{"", RowFact::by_option, true, [](const RowOf& of) { return options_text(of.cell, of.found.options); }},
    RowFact{"cluster", "cluster", true, [](const RowOf& of) { return of.cell.cluster; }},
    RowFact{"GPUs", "GPUs", false, [](const RowOf& of) { return std::to_string(of.cell.gpus); }},
    RowFact{"layout", "layout", true, [](const RowOf& of) { return layout_text(of.found.point(of.row)); }},
    RowFact{"launch flags", "launch flags", false, [](const RowOf& of) { return human(of.row.flags_step); }},
    RowFact{"planned", "planned", false,
            [](const RowOf& of) { return of.row.planned ? human(of.row.planned->step) : ""; }},
    RowFact{nowhere, "GPUs wait", false,
            [](const RowOf& of) { return fed(of) == nullptr ? std::string() : human(fed(of)->waits); }},
    RowFact{nowhere, "CPU cores", false,
            [](const RowOf& of) {
                return fed(of) == nullptr ? std::string() : with_commas(static_cast<double>(fed(of)->cores));
            }},
    RowFact{"tokens/s/GPU", "tokens/s a GPU", false,
            [](const RowOf& of) { return with_commas(of.row.pace.tokens_per_second_per_gpu); }},
    RowFact{nowhere, "samples/s", false,
            [](const RowOf& of) { return fmt::format("{:.4g}", of.row.pace.samples_per_second); }},
    RowFact{nowhere, "TFLOP/s a GPU", false,
            [](const RowOf& of) { return fmt::format("{:.0f}", of.row.pace.tflops_per_gpu); }},
    RowFact{"MFU", "MFU", false, [](const RowOf& of) { return percent(of.row.pace.mfu); }},
    RowFact{"days", "days", false, [](const RowOf& of) { return of.run ? fmt::format("{:.1f}", of.run->days) : ""; }},
    RowFact{"GPU-hours", "GPU-hours", false,
            [](const RowOf& of) { return of.run ? with_commas(of.run->gpu_hours) : ""; }},
    RowFact{"USD", "USD", false, [](const RowOf& of) { return of.run ? commas_or_none(of.run->usd) : ""; }},
    RowFact{nowhere, "kWh", false, [](const RowOf& of) { return of.run ? commas_or_none(of.run->kwh) : ""; }},
    RowFact{"GiB left", "GiB left", false,
            [](const RowOf& of) { return fmt::format("{:.1f}", gib(of.row.memory_left)); }},
    RowFact{"+-", "off by", false, [](const RowOf& of) { return fmt::format("{:.1f} %", of.row.error_percent); }},
    RowFact{"", "notes", true, [](const RowOf& of) { return notes_of(of.found.study, of.row); }},
};

}  // namespace

std::span<const RowFact> row_facts() { return all_row_facts; }

bool has_little_room(const FoundStudy& found, const Row& row) {
    const Bytes peak = found.results[row.cell].facts.usable - row.memory_left;
    return emulator::leaves_little_room(peak, workloads::device(found.cell(row).machine.device).memory);
}

std::string asked_text(const Study& study) {
    if (study.training_tokens == 0) return {};
    std::string text = planner::tokens_text(study.training_tokens) + " tokens";
    if (study.constraints.days)
        text += fmt::format(", in at most {:.4g} {}", *study.constraints.days,
                            noun_of(*study.constraints.days == 1, "day"));
    if (study.constraints.usd) text += fmt::format(", for at most {} USD", with_commas(*study.constraints.usd));
    return text;
}

std::string arithmetic_text(const FoundStudy& found) {
    const std::size_t place = found.ranking.answers.cheapest.value_or(0);
    const Row& row = found.row(place);
    const Cell& cell = found.cell(row);
    const CellFacts& facts = found.results[row.cell].facts;
    if (!row.pace.run)
        return fmt::format("row {}: {} tokens a step / {} / {} GPUs = {} tokens/s a GPU", place + 1,
                           with_commas(static_cast<double>(facts.tokens)), human(row.step()), cell.gpus,
                           with_commas(row.pace.tokens_per_second_per_gpu));
    const planner::TrainingCost& run = *row.pace.run;
    std::string text = fmt::format(
        "row {}: {} tokens / {} tokens a step = {} steps x {} = {:.2f} days x {} GPUs x 24 h = {} GPU-hours", place + 1,
        planner::tokens_text(run.tokens), with_commas(static_cast<double>(facts.tokens)),
        with_commas(static_cast<double>(run.steps)), human(row.step()), run.days, cell.gpus,
        with_commas(run.gpu_hours));
    if (!run.usd) return text;
    text += fmt::format(" x {:.2f} USD", (*run.usd - row.usd_of_cores) / run.gpu_hours);
    if (row.cores_bought > 0)
        text += fmt::format(" + {} USD of {} CPU cores", with_commas(row.usd_of_cores),
                            with_commas(static_cast<double>(row.cores_bought)));
    text += fmt::format(" = {} USD", with_commas(*run.usd));
    return text;
}

std::string ties_text(const FoundStudy& found) {
    const Ranking& ranking = found.ranking;
    if (!ranking.answers.cheapest) return {};
    const std::size_t best = *ranking.answers.cheapest;
    const auto spots = plane_of(found.study, ranking).spots;
    std::vector<std::string> others;
    double most_over = 0;
    for (std::size_t i = 0; i < ranking.rows.size(); ++i) {
        if (i == best || !ranking.rows[i].is_tied) continue;
        others.push_back(std::to_string(i + 1));
        most_over = std::max(most_over, 100 * (spots[i].y / spots[best].y - 1));
    }
    if (others.empty()) return {};
    constexpr std::size_t most_named = 12;
    const std::size_t count = others.size();
    others.resize(std::min(count, most_named));
    return fmt::format(
        "tied with row {} ({}): {} {}{}, at most {:.1f} % above it: less than the costs of their steps can tell apart",
        best + 1, cheapest_name(found.study, ranking), count == 1 ? "row" : "rows", joined(others, ", "),
        count > others.size() ? fmt::format(" and {} more", count - others.size()) : "", most_over);
}

std::string errors_text(const FoundStudy& found) {
    const auto of_cell = [&](const Cell& cell) {
        const CellResult& result = found.results[cell.number];
        if (!result.why_not.empty()) return std::string();
        return fmt::format("{} {:.1f} % ({})", cell.cluster, result.facts.error_percent, result.facts.footing);
    };
    return joined(each_once(found.study, of_cell), ", ");
}

std::string points_text(const Ranking& ranking) {
    const auto count = [](std::size_t points) { return with_commas(static_cast<double>(points)); };
    return fmt::format("{} judged, {} passed over by bounds, {} refused", count(ranking.judged), count(ranking.bounded),
                       count(ranking.refused));
}

std::vector<Reason> reasons_of(const std::vector<Point>& points) {
    std::map<std::string, std::size_t> counts;
    for (const Point& point : points)
        if (point.status == PointStatus::refused) ++counts[point.why];
    std::vector<Reason> reasons;
    reasons.reserve(counts.size());
    for (const auto& [why, count] : counts) reasons.push_back({why, count});
    std::stable_sort(reasons.begin(), reasons.end(),
                     [](const Reason& a, const Reason& b) { return a.points > b.points; });
    return reasons;
}

std::string title_of(const Study& study) { return study.name.empty() ? "study" : study.name; }

}  // namespace pipeweaver::capacity::show
