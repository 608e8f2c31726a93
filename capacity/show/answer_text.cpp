// The answer in a terminal.
#include "capacity/show/pareto.hpp"
#include "capacity/show/words.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"
#include "pipeweaver/capacity/answer.hpp"
#include "pipeweaver/emulator/reserve.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::capacity {

namespace show {

namespace {

constexpr std::size_t rows_shown = 10;

// Places of the answers, then of the best others.
std::vector<std::size_t> rows_shown_of(const Ranking& ranking) {
    std::vector<std::size_t> places = ranking.answers.places();
    const auto answers = places;
    for (std::size_t i = 0; i < ranking.rows.size() && places.size() < rows_shown; ++i)
        if (std::find(answers.begin(), answers.end(), i) == answers.end()) places.push_back(i);
    return places;
}

std::string rows_text(const FoundStudy& found) {
    std::vector<RowFact> facts;
    for (const RowFact& fact : row_facts())
        if (fact.terminal != RowFact::nowhere) facts.push_back(fact);
    std::vector<TextTable::Column> columns;
    for (const RowFact& fact : facts) columns.push_back({std::string(fact.terminal), fact.is_word});
    TextTable table(std::move(columns));
    const auto places = rows_shown_of(found.ranking);
    for (const std::size_t place : places) {
        std::vector<std::string> texts;
        for (const RowFact& fact : facts) texts.push_back(fact.text({found, place}));
        table.add(std::move(texts));
    }
    std::string text = table.text();
    const std::size_t more = found.ranking.rows.size() - places.size();
    if (more > 0) text += fmt::format("{} more rows are in the tables and the report\n", more);
    return text;
}

std::string cell_text(const Cell& cell) { return cell.axes.empty() ? gpus_text(cell) : cell.axes; }

// Rows whose layout is the best for a planned order, and where launch flags alone are faster.
std::string flags_text(const FoundStudy& found) {
    std::string text;
    for (std::size_t i = 0; i < found.ranking.rows.size(); ++i)
        if (const auto& flags = found.row(i).elsewhere; flags && flags->step < found.row(i).flags_step)
            text += fmt::format("row {} is in the best layout as planned; launch flags alone take {} in {}\n", i + 1,
                                human(flags->step), layout_text(found.results[found.row(i).cell].points[flags->point]));
    return text;
}

// Rows that are full enough for an allocator to fail where shapes vary.
std::string room_text(const FoundStudy& found) {
    std::vector<std::string> places;
    for (std::size_t i = 0; i < found.ranking.rows.size(); ++i)
        if (has_little_room(found, found.row(i))) places.push_back(std::to_string(i + 1));
    if (places.empty()) return {};
    return fmt::format(
        "little room: {} {}: less than {} of the fullest GPU is left, which an allocator may take where shapes vary\n",
        noun_of(places.size() == 1, "row"), joined(places, ", "), percent(emulator::varying_shapes_part));
}

// Beneath the table: what its columns and notes mean here.
std::string notes_text(const FoundStudy& found) {
    const auto& rows = found.ranking.rows;
    const Study& study = found.study;
    std::string text = fmt::format("+-: how far steps of real runs are off on average: {}\n", errors_text(found));
    if (std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.at_risk; }))
        text += "at risk: a step that much longer, or at its far end, would not meet what is asked\n";
    if (std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.far().has_value(); }))
        text += "to: steps are of layers in CUDA graphs or few kernels; kernel by kernel they take up to so long\n";
    text += room_text(found);
    for (const CellResult& result : found.results)
        if (!result.why_not.empty())
            text += fmt::format("not asked: {}: {}\n", cell_text(study.cells[result.cell]), result.why_not);
    const auto unpriced = each_once(study, [](const Cell& cell) { return price_of(cell) > 0 ? "" : cell.cluster; });
    const bool some_priced =
        std::any_of(study.cells.begin(), study.cells.end(), [](const Cell& cell) { return price_of(cell) > 0; });
    if (some_priced && study.training_tokens > 0 && !found.ranking.has_prices)
        text += fmt::format("no price is known of {}: rows are ranked by GPU-hours\n", joined(unpriced, ", "));
    text += flags_text(found);
    for (std::size_t i = 0; i < rows.size(); ++i)
        if (!rows[i].why_not_planned.empty())
            text += fmt::format("row {} is not planned: {}\n", i + 1, rows[i].why_not_planned);
    return text;
}

// What faulty nodes leave of the GPUs of the first rows.
std::string faults_text(const FoundStudy& found) {
    constexpr std::size_t most = 10;
    TextTable table({{"row"},
                     {"cluster", true},
                     {"GPUs"},
                     {"TP"},
                     {"usable"},
                     {"wasted"},
                     {"job at 99 %"},
                     {"spares"},
                     {"USD of a GPU's network"}});
    bool any = false;
    for (std::size_t i = 0; i < std::min(most, found.ranking.rows.size()); ++i) {
        const Row& row = found.row(i);
        if (!row.faults) continue;
        any = true;
        const FaultColumns& of = *row.faults;
        table.add({std::to_string(i + 1), found.cell(row).cluster, std::to_string(found.cell(row).gpus),
                   std::to_string(found.point(row).as.layout.tp), fmt::format("{:.1f}", of.usable_gpus),
                   percent(of.wasted_share), std::to_string(of.job_gpus), of.spares ? std::to_string(*of.spares) : "",
                   of.usd_per_gpu ? fmt::format("{:.0f}", *of.usd_per_gpu) : ""});
    }
    if (!any) return {};
    return fmt::format(
               "\nwith {:g} % of the nodes down: GPUs in whole tensor parallel groups on average, healthy ones in "
               "none, a job's that\nis there with 99 %, and what to buy beside them so that all are\n",
               100 * found.study.faulty) +
           table.text();
}

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
    const FoundStudy found(study, results, ranking);
    text += fmt::format("{}{}\n{}\n", rows_text(found), notes_text(found), arithmetic_text(found));
    const std::string ties = ties_text(found);
    if (!ties.empty()) text += ties + "\n";
    return text + input_text(found) + faults_text(found) + "\n" + pareto_text(study, ranking);
}

}  // namespace pipeweaver::capacity
