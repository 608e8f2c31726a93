// The answer in a terminal.
#include "capacity/show/fault_text.hpp"
#include "capacity/show/pareto.hpp"
#include "capacity/show/words.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/capacity/tables.hpp"
#include "pipeweaver/emit/html.hpp"
#include "pipeweaver/emulator/reserve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace pipeweaver::capacity {

namespace show {

namespace {

constexpr std::size_t rows_shown = 10;

// The answers, then the best others; places among the rows.
struct RowsShown {
    std::vector<std::size_t> answers, others;
};

RowsShown rows_shown_of(const Ranking& ranking) {
    RowsShown shown;
    for (const auto& answer : {ranking.answers.fewest, ranking.answers.cheapest, ranking.answers.fastest})
        if (answer && std::find(shown.answers.begin(), shown.answers.end(), *answer) == shown.answers.end())
            shown.answers.push_back(*answer);
    for (std::size_t i = 0; i < ranking.rows.size(); ++i)
        if (shown.answers.size() + shown.others.size() < rows_shown &&
            std::find(shown.answers.begin(), shown.answers.end(), i) == shown.answers.end())
            shown.others.push_back(i);
    return shown;
}

// A size as GiB, below nothing with its sign.
std::string gib_text(Bytes size) { return fmt::format("{:.1f}", gib(size)); }

std::vector<std::string> row_texts(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking,
                                   std::size_t place, const std::vector<std::string>& options) {
    const Row& row = ranking.rows[place];
    const Cell& cell = study.cells[row.cell];
    const auto& run = row.pace.run;
    return {joined(answers_of(study, ranking, place), ", "),
            std::to_string(place + 1),
            options_text(cell, options),
            cell.cluster,
            std::to_string(cell.gpus),
            layout_text(point_of(results, row).as),
            human(row.flags_step),
            row.planned ? human(row.planned->step) : "",
            planner::with_commas(row.pace.tokens_per_second_per_gpu),
            percent(row.pace.mfu),
            run ? fmt::format("{:.1f}", run->days) : "",
            run ? planner::with_commas(run->gpu_hours) : "",
            run && run->usd ? planner::with_commas(*run->usd) : "",
            gib_text(row.memory_left),
            fmt::format("{:.1f} %", row.error_percent),
            notes_of(study, row)};
}

std::string rows_text(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking) {
    TextTable table({{"", true},
                     {"row"},
                     {"", true},
                     {"cluster", true},
                     {"GPUs"},
                     {"layout", true},
                     {"launch flags"},
                     {"planned"},
                     {"tokens/s/GPU"},
                     {"MFU"},
                     {"days"},
                     {"GPU-hours"},
                     {"USD"},
                     {"GiB left"},
                     {"+-"},
                     {"", true}});
    const auto options = varying_options(study);
    const RowsShown shown = rows_shown_of(ranking);
    for (const std::size_t place : shown.answers) table.add(row_texts(study, results, ranking, place, options));
    for (const std::size_t place : shown.others) table.add(row_texts(study, results, ranking, place, options));
    std::string text = table.text();
    const std::size_t more = ranking.rows.size() - shown.answers.size() - shown.others.size();
    if (more > 0) text += fmt::format("{} more rows are in the tables and the report\n", more);
    return text;
}

std::string cell_text(const Cell& cell) {
    return cell.axes.empty() ? fmt::format("{} x {}", cell.gpus, cell.cluster) : cell.axes;
}

// The clusters without a price, each once.
std::string unpriced_text(const Study& study) {
    std::vector<std::string> names;
    for (const Cell& cell : study.cells)
        if (price_of(cell) == 0 && std::find(names.begin(), names.end(), cell.cluster) == names.end())
            names.push_back(cell.cluster);
    return fmt::format("{}", fmt::join(names, ", "));
}

// The cell's fastest point by launch flags; null: none is faster than the row's own.
const Point* faster_by_flags(const std::vector<CellResult>& results, const Row& row) {
    const Point* fastest = &point_of(results, row);
    for (const Point& point : results[row.cell].points)
        if (point.status == PointStatus::judged && point.step < fastest->step) fastest = &point;
    return fastest != &point_of(results, row) && fastest->step < row.flags_step ? fastest : nullptr;
}

// Rows whose layout is the best for a planned order, and where launch flags alone are faster.
std::string flags_text(const std::vector<CellResult>& results, const Ranking& ranking) {
    std::string text;
    for (std::size_t i = 0; i < ranking.rows.size(); ++i)
        if (const Point* fastest = faster_by_flags(results, ranking.rows[i]))
            text += fmt::format("row {} is in the best layout as planned; launch flags alone take {} in {}\n", i + 1,
                                human(fastest->step), layout_text(fastest->as));
    return text;
}

// Rows that are full enough for an allocator to fail where shapes vary.
std::string room_text(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking) {
    std::vector<std::string> places;
    for (std::size_t i = 0; i < ranking.rows.size(); ++i)
        if (has_little_room(study, results, ranking.rows[i])) places.push_back(std::to_string(i + 1));
    if (places.empty()) return {};
    return fmt::format(
        "little room: {} {}: less than {} of the fullest GPU is left, which an allocator may take where shapes vary\n",
        places.size() == 1 ? "row" : "rows", joined(places, ", "), percent(emulator::varying_shapes_part));
}

// Beneath the table: what its columns and notes mean here.
std::string notes_text(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking) {
    const auto& rows = ranking.rows;
    std::string text =
        fmt::format("+-: how far steps of real runs are off on average: {}\n", errors_text(study, results));
    if (std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.at_risk; }))
        text += "at risk: a step that much longer would not meet what is asked\n";
    text += room_text(study, results, ranking);
    for (const CellResult& result : results)
        if (!result.why_not.empty())
            text += fmt::format("not asked: {}: {}\n", cell_text(study.cells[result.cell]), result.why_not);
    const bool some_priced =
        std::any_of(study.cells.begin(), study.cells.end(), [](const Cell& cell) { return price_of(cell) > 0; });
    if (some_priced && study.training_tokens > 0 && !ranking.has_prices)
        text += fmt::format("no price is known of {}: rows are ranked by GPU-hours\n", unpriced_text(study));
    text += flags_text(results, ranking);
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (!rows[i].why_not_planned.empty())
            text += fmt::format("row {} is not planned: {}\n", i + 1, rows[i].why_not_planned);
    return text;
}

// The first answer, or else the best row.
std::size_t first_row(const Ranking& ranking) { return ranking.answers.cheapest.value_or(0); }

std::string why_no_rows(const Study& study, const std::vector<CellResult>& results) {
    constexpr std::size_t most_reasons = 5;
    std::vector<Point> points;
    std::string text = "no layout runs\n";
    for (const CellResult& result : results) {
        points.insert(points.end(), result.points.begin(), result.points.end());
        if (!result.why_not.empty())
            text += fmt::format("  {}: {}\n", gpus_text(study.cells[result.cell]), result.why_not);
    }
    const auto reasons = reasons_of(points);
    for (std::size_t i = 0; i < std::min(most_reasons, reasons.size()); ++i)
        text += fmt::format("  {} refused: {}\n", reasons[i].points, reasons[i].why);
    return text;
}

}  // namespace

}  // namespace show

std::string answer_text(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking) {
    using namespace show;
    const std::string asked = asked_text(study);
    std::string text = fmt::format("{}{}{}\n", title_of(study), asked.empty() ? "" : ": ", asked);
    text += fmt::format("{}, points: {}\n\n", plural(study.cells.size(), "cell"), points_text(ranking));
    if (!ranking.none_meets.empty()) text += ranking.none_meets + "\n\n";
    if (ranking.rows.empty()) return text + why_no_rows(study, results);
    text += rows_text(study, results, ranking) + notes_text(study, results, ranking);
    const std::size_t first = first_row(ranking);
    text += fmt::format("\nrow {}: {}\n", first + 1, arithmetic_text(study, results, ranking.rows[first]));
    const std::string ties = ties_text(study, ranking);
    if (!ties.empty()) text += ties + "\n";
    return text + faults_text(study, results, ranking) + "\n" + pareto_text(study, ranking);
}

}  // namespace pipeweaver::capacity
