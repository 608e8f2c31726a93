#include "capacity/show/words.hpp"

#include "capacity/show/pareto.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace pipeweaver::capacity::show {

using planner::with_commas;

namespace {

std::string cheapest_name(const Study& study, const Ranking& ranking) {
    if (ranking.has_prices) return "cheapest";
    return study.training_tokens > 0 ? "fewest GPU-hours" : "least GPU time";
}

}  // namespace

const Point& point_of(const std::vector<CellResult>& results, const Row& row) {
    return results[row.cell].points[row.point];
}

std::array<std::int64_t, 6> degrees_of(const planner::LayoutAndZero& as) {
    const emulator::Layout& in = as.layout;
    return {in.tp, in.cp, in.pp, in.dp, in.ep, as.zero};
}

std::string layout_text(const planner::LayoutAndZero& as) {
    const auto degrees = degrees_of(as);
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
    return names;
}

std::string value_of(const Cell& cell, std::string_view option) {
    const auto* value = cell.asked.find(option);
    return value == nullptr ? std::string() : value->text;
}

std::string options_text(const Cell& cell, const std::vector<std::string>& options) {
    std::string text;
    for (const std::string& name : options)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value_of(cell, name));
    return text;
}

std::string gpus_text(const Cell& cell) { return fmt::format("{} x {}", cell.gpus, cell.cluster); }

std::vector<std::string> answers_of(const Study& study, const Ranking& ranking, std::size_t row) {
    std::vector<std::string> names;
    if (ranking.answers.fewest == row) names.emplace_back("fewest GPUs");
    if (ranking.answers.cheapest == row) names.push_back(cheapest_name(study, ranking));
    if (ranking.answers.fastest == row) names.emplace_back("fastest");
    return names;
}

std::vector<std::string_view> answer_keys_of(const Ranking& ranking, std::size_t row) {
    std::vector<std::string_view> keys;
    if (ranking.answers.fewest == row) keys.emplace_back("fewest");
    if (ranking.answers.cheapest == row) keys.emplace_back("cheapest");
    if (ranking.answers.fastest == row) keys.emplace_back("fastest");
    return keys;
}

std::vector<std::string_view> missed_by(const Study& study, const Row& row) {
    std::vector<std::string_view> missed;
    if (!row.pace.run) return missed;
    if (study.constraints.days && row.pace.run->days > *study.constraints.days) missed.emplace_back("days");
    if (study.constraints.usd && row.pace.run->usd.value_or(0) > *study.constraints.usd) missed.emplace_back("USD");
    return missed;
}

std::string notes_of(const Study& study, const Row& row) {
    std::vector<std::string> notes;
    if (row.is_tied) notes.emplace_back("tied");
    if (row.at_risk) notes.emplace_back("at risk");
    if (row.modelled) notes.emplace_back("modelled");
    for (const std::string_view missed : missed_by(study, row)) notes.push_back(fmt::format("{} missed", missed));
    return joined(notes, ", ");
}

bool has_little_room(const Study& study, const std::vector<CellResult>& results, const Row& row) {
    const Bytes peak = results[row.cell].facts.usable - row.memory_left;
    return emulator::leaves_little_room(peak, workloads::device(study.cells[row.cell].machine.device).memory);
}

std::string asked_text(const Study& study) {
    if (study.training_tokens == 0) return {};
    std::string text = planner::tokens_text(study.training_tokens) + " tokens";
    if (study.constraints.days) text += fmt::format(", in at most {:.4g} days", *study.constraints.days);
    if (study.constraints.usd) text += fmt::format(", for at most {} USD", with_commas(*study.constraints.usd));
    return text;
}

std::string arithmetic_text(const Study& study, const std::vector<CellResult>& results, const Row& row) {
    const Cell& cell = study.cells[row.cell];
    const CellFacts& facts = results[row.cell].facts;
    if (!row.pace.run)
        return fmt::format("{} tokens a step / {} / {} GPUs = {} tokens/s a GPU",
                           with_commas(static_cast<double>(facts.tokens)), human(row.step()), cell.gpus,
                           with_commas(row.pace.tokens_per_second_per_gpu));
    const planner::TrainingCost& run = *row.pace.run;
    std::string text = fmt::format(
        "{} tokens / {} tokens a step = {} steps x {} = {:.2f} days x {} GPUs x 24 h = {} "
        "GPU-hours",
        planner::tokens_text(run.tokens), with_commas(static_cast<double>(facts.tokens)),
        with_commas(static_cast<double>(run.steps)), human(row.step()), run.days, cell.gpus,
        with_commas(run.gpu_hours));
    if (run.usd) text += fmt::format(" x {:.2f} USD = {} USD", *run.usd / run.gpu_hours, with_commas(*run.usd));
    return text;
}

std::string ties_text(const Study& study, const Ranking& ranking) {
    if (!ranking.answers.cheapest) return {};
    const std::size_t best = *ranking.answers.cheapest;
    const auto spots = plane_of(study, ranking).spots;
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
        "tied with row {} ({}): {} {}{}, at most {:.1f} % above it: less than the costs of their steps can "
        "tell apart",
        best + 1, cheapest_name(study, ranking), count == 1 ? "row" : "rows", joined(others, ", "),
        count > others.size() ? fmt::format(" and {} more", count - others.size()) : "", most_over);
}

std::string errors_text(const Study& study, const std::vector<CellResult>& results) {
    std::vector<std::string> said;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const CellFacts& facts = results[i].facts;
        if (!results[i].why_not.empty()) continue;
        const std::string one =
            fmt::format("{} {:.1f} % ({})", study.cells[i].cluster, facts.error_percent, facts.footing);
        if (std::find(said.begin(), said.end(), one) == said.end()) said.push_back(one);
    }
    return joined(said, ", ");
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

std::string joined(const std::vector<std::string>& texts, std::string_view between) {
    std::string text;
    for (const std::string& one : texts) {
        if (!text.empty()) text += between;
        text += one;
    }
    return text;
}

std::string title_of(const Study& study) { return study.name.empty() ? "study" : study.name; }

}  // namespace pipeweaver::capacity::show
