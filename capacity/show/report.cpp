// The page of a study.
#include "capacity/show/page.hpp"
#include "pipeweaver/capacity/answer.hpp"
#include "pipeweaver/emit/html.hpp"

#include <fmt/format.h>

// Set in embedded.S.
extern "C" {
extern const char pipeweaver_capacity_report_template[], pipeweaver_capacity_report_template_end[];
}

namespace pipeweaver::capacity {

namespace show {

namespace html = emit::html;

namespace {

std::string answer_figure(const FoundStudy& found, std::size_t place) {
    const Row& row = found.row(place);
    std::string about = layout_text(found.point(row));
    if (row.pace.run) about += fmt::format("; {:.1f} days", row.pace.run->days);
    if (row.pace.run && row.pace.run->usd) about += fmt::format(", {} USD", planner::with_commas(*row.pace.run->usd));
    const std::string notes = notes_of(found.study, row);
    about += fmt::format("; row {}{}{}", place + 1, notes.empty() ? "" : ", ", notes);
    return html::figure(answers_text(found, place), gpus_text(found.cell(row)), about);
}

std::string figures_of(const FoundStudy& found) {
    std::string text;
    for (const std::size_t place : found.ranking.answers.places()) text += answer_figure(found, place);
    if (text.empty()) text = html::figure("answer", "none", "no row meets what is asked");
    const Ranking& ranking = found.ranking;
    return text +
           html::figure("points",
                        planner::with_commas(static_cast<double>(ranking.judged + ranking.bounded + ranking.refused)),
                        points_text(ranking));
}

std::string answer_section(const FoundStudy& found) {
    const Ranking& ranking = found.ranking;
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
    paragraph("arithmetic", arithmetic_text(found));
    paragraph("ties", ties_text(found));
    return text;
}

}  // namespace

}  // namespace show

std::string report_html(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking) {
    using namespace show;
    const FoundStudy found(study, results, ranking);
    emit::html::Parts parts{{"style", emit::html::style()},
                            {"title", emit::html::escape(title_of(study))},
                            {"asked", emit::html::escape(asked_text(study))},
                            {"figures", figures_of(found)},
                            {"answer", answer_section(found)},
                            {"cells", cell_list(found)},
                            {"facts", study_facts(found)},
                            {"basis", basis_table(found)}};
    if (!ranking.rows.empty()) {
        parts.emplace("pareto", pareto_plot(found));
        parts.emplace("scaling", scaling_plots(found));
        parts.emplace("rows", row_table(found));
        parts.emplace("commands", row_commands(found));
    }
    return emit::html::filled({pipeweaver_capacity_report_template, pipeweaver_capacity_report_template_end}, parts);
}

}  // namespace pipeweaver::capacity
