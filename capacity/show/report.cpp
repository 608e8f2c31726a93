// The page of a study.
#include "capacity/show/page.hpp"
#include "pipeweaver/capacity/tables.hpp"
#include "pipeweaver/emit/html.hpp"

#include <fmt/format.h>

#include <algorithm>

// Set in embedded.S.
extern "C" {
extern const char pipeweaver_capacity_report_template[], pipeweaver_capacity_report_template_end[];
}

namespace pipeweaver::capacity {

namespace show {

namespace html = emit::html;

Shown shown_of(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking) {
    Shown shown{study, results, ranking, varying_options(study), {}};
    for (const Cell& cell : study.cells)
        if (std::find(shown.clusters.begin(), shown.clusters.end(), cell.cluster) == shown.clusters.end())
            shown.clusters.push_back(cell.cluster);
    return shown;
}

namespace {

std::string answer_figure(const Shown& shown, std::size_t place) {
    const Row& row = shown.ranking.rows[place];
    std::string about = layout_text(point_of(shown.results, row).as);
    if (row.pace.run) about += fmt::format("; {:.1f} days", row.pace.run->days);
    if (row.pace.run && row.pace.run->usd) about += fmt::format(", {} USD", planner::with_commas(*row.pace.run->usd));
    const std::string notes = notes_of(shown.study, row);
    about += fmt::format("; row {}{}{}", place + 1, notes.empty() ? "" : ", ", notes);
    return html::figure(joined(answers_of(shown.study, shown.ranking, place), ", "),
                        gpus_text(shown.study.cells[row.cell]), about);
}

std::string figures_of(const Shown& shown) {
    const auto& answers = shown.ranking.answers;
    std::vector<std::size_t> places;
    std::string text;
    for (const auto& answer : {answers.fewest, answers.cheapest, answers.fastest}) {
        if (!answer || std::find(places.begin(), places.end(), *answer) != places.end()) continue;
        places.push_back(*answer);
        text += answer_figure(shown, *answer);
    }
    if (places.empty()) text += html::figure("answer", "none", "no row meets what is asked");
    const Ranking& ranking = shown.ranking;
    return text +
           html::figure("points",
                        planner::with_commas(static_cast<double>(ranking.judged + ranking.bounded + ranking.refused)),
                        points_text(ranking));
}

std::string answer_section(const Shown& shown) {
    const Ranking& ranking = shown.ranking;
    std::string text;
    const auto paragraph = [&](std::string_view id, std::string said) {
        if (said.empty()) return;
        if (said.front() >= 'a' && said.front() <= 'z') said.front() = static_cast<char>(said.front() - 'a' + 'A');
        text += fmt::format("<p id=\"{}\">{}</p>\n", id, html::escape(said + "."));
    };
    paragraph("none-meets", ranking.none_meets);
    if (ranking.rows.empty()) {
        paragraph("no-rows", "No layout runs; the cells below have the reasons");
        return text;
    }
    const std::size_t first = ranking.answers.cheapest.value_or(0);
    paragraph("arithmetic",
              fmt::format("Row {}: {}", first + 1, arithmetic_text(shown.study, shown.results, ranking.rows[first])));
    paragraph("ties", ties_text(shown.study, ranking));
    return text;
}

}  // namespace

}  // namespace show

std::string report_html(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking) {
    using namespace show;
    const Shown shown = shown_of(study, results, ranking);
    emit::html::Parts parts{{"style", emit::html::style()},
                            {"title", emit::html::escape(title_of(study))},
                            {"asked", emit::html::escape(asked_text(study))},
                            {"figures", figures_of(shown)},
                            {"answer", answer_section(shown)},
                            {"cells", cell_list(shown)},
                            {"facts", study_facts(shown)},
                            {"basis", basis_table(shown)}};
    if (!ranking.rows.empty()) {
        parts.emplace("pareto", pareto_plot(shown));
        parts.emplace("scaling", scaling_plots(shown));
        parts.emplace("rows", row_table(shown));
        parts.emplace("commands", row_commands(shown));
    }
    return emit::html::filled({pipeweaver_capacity_report_template, pipeweaver_capacity_report_template_end}, parts);
}

}  // namespace pipeweaver::capacity
