// The cells of a study on its page, and what all figures rest on.
#include "capacity/show/page.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pipeweaver::capacity::show {

namespace html = emit::html;

namespace {

// Judged points, the fastest first.
std::vector<const Point*> judged_of(const CellResult& result) {
    std::vector<const Point*> points;
    for (const Point& point : result.points)
        if (point.status == PointStatus::judged) points.push_back(&point);
    std::stable_sort(points.begin(), points.end(), [](const Point* a, const Point* b) { return a->step < b->step; });
    return points;
}

std::string points_table(const CellResult& result) {
    html::LongList list{
        "<div class=\"wide\"><table class=\"points\"><thead><tr><th>layout</th><th class=\"n\">step</th>"
        "<th class=\"n\">bound</th><th class=\"n\">memory</th><th>partition</th><th class=\"n\">chunks a "
        "rank</th><th>schedule</th><th>recompute</th></tr></thead><tbody>\n",
        "</tbody></table></div>\n",
        {},
        "slower"};
    for (const Point* point : judged_of(result)) {
        std::string row = fmt::format("<tr><th scope=\"row\">{}</th>", layout_text(point->as));
        for (const std::string& text : {human(point->step), human(point->bound), human(point->memory)})
            row += fmt::format("<td class=\"n\">{}</td>", text);
        row += fmt::format("<td>{}</td><td class=\"n\">{}</td><td>{}</td><td>{}</td></tr>\n",
                           html::escape(point->partition), point->chunks, html::escape(point->policy),
                           html::escape(point->recompute));
        list.rows.push_back(std::move(row));
    }
    return list.rows.empty() ? std::string() : html::first_of(list);
}

std::string others_list(const CellResult& result) {
    html::LongList list{"<ul class=\"not\">\n", "</ul>\n", {}, "more reasons"};
    const auto bounded =
        static_cast<std::size_t>(std::count_if(result.points.begin(), result.points.end(), [](const Point& point) {
            return point.status == PointStatus::bounded;
        }));
    if (bounded > 0)
        list.rows.push_back(fmt::format("<li>{} passed over: a bound shows that they are slower, or too slow</li>\n",
                                        plural(bounded, "layout")));
    for (const Reason& reason : reasons_of(result.points))
        list.rows.push_back(fmt::format("<li>{} refused: {}</li>\n", reason.points, html::escape(reason.why)));
    return list.rows.empty() ? std::string() : html::first_of(list);
}

std::string cell_facts(const CellResult& result) {
    const CellFacts& facts = result.facts;
    const auto count = [](std::int64_t number) { return planner::with_commas(static_cast<double>(number)); };
    return fmt::format(
        "<p class=\"about\">A step: {} samples in {} microbatches, {} tokens of the backbone, {:.4g} PFLOP. "
        "A GPU has {} for tensors.</p>\n",
        count(facts.samples), count(facts.microbatches), count(facts.tokens), facts.model_flops * 1e-15,
        human(facts.usable));
}

std::string one_cell(const Shown& shown, std::size_t number) {
    const Cell& cell = shown.study.cells[number];
    const CellResult& result = shown.results[number];
    std::string name = gpus_text(cell);
    if (!shown.options.empty()) name += ", " + options_text(cell, shown.options);
    if (!result.why_not.empty())
        return html::folded(name + ": cannot be asked",
                            fmt::format("<p class=\"not\">{}</p>\n", html::escape(result.why_not)), false);
    const auto judged = judged_of(result);
    name += judged.empty() ? std::string(": no layout runs")
                           : fmt::format(": {}, {}", human(judged.front()->step), layout_text(judged.front()->as));
    return html::folded(name, cell_facts(result) + points_table(result) + others_list(result), false);
}

std::string prices_text(const Shown& shown) {
    std::vector<std::string> said;
    for (const Cell& cell : shown.study.cells) {
        const double price = price_of(cell);
        std::string one =
            price > 0 ? fmt::format("{} {:.2f}", cell.cluster, price) : fmt::format("{} not said", cell.cluster);
        if (std::find(said.begin(), said.end(), one) == said.end()) said.push_back(std::move(one));
    }
    return joined(said, ", ");
}

// "h100-sxm, b200" or "12 values"
std::string values_text(const std::vector<std::string>& values) {
    constexpr std::size_t most = 20;
    return values.size() <= most ? joined(values, ", ") : plural(values.size(), "value");
}

template <class Of>
std::string distinct(const Shown& shown, Of of) {
    std::vector<std::string> values;
    for (const Cell& cell : shown.study.cells) {
        std::string value = of(cell);
        if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(std::move(value));
    }
    return values_text(values);
}

}  // namespace

std::string cell_list(const Shown& shown) {
    std::string text;
    for (std::size_t i = 0; i < shown.results.size(); ++i) text += one_cell(shown, i);
    return text;
}

std::string study_facts(const Shown& shown) {
    const Study& study = shown.study;
    std::vector<std::string> facts;
    const std::string asked = asked_text(study);
    if (!asked.empty()) facts.push_back(html::fact("asked", asked));
    facts.push_back(html::fact("models", distinct(shown, [](const Cell& cell) { return value_of(cell, "model"); })));
    facts.push_back(html::fact("clusters", distinct(shown, [](const Cell& cell) { return cell.cluster; })));
    facts.push_back(html::fact("GPUs", distinct(shown, [](const Cell& cell) { return std::to_string(cell.gpus); })));
    for (const std::string& option : shown.options)
        if (option != "model")
            facts.push_back(
                html::fact(option, distinct(shown, [&](const Cell& cell) { return value_of(cell, option); })));
    facts.push_back(html::fact("USD of a GPU-hour", prices_text(shown)));
    facts.push_back(html::fact("points", points_text(shown.ranking)));
    facts.push_back(html::fact("steps are off by", errors_text(study, shown.results) + ", on average"));
    facts.push_back(html::fact("study", fmt::format("{}, SHA-256 {}", title_of(study), study.sha256)));
    return html::fact_table(facts);
}

std::string basis_table(const Shown& shown) {
    std::string rows;
    for (std::size_t i = 0; i < shown.ranking.rows.size(); ++i) {
        const Row& row = shown.ranking.rows[i];
        if (!row.planned) continue;
        const Planned& planned = *row.planned;
        rows += fmt::format("<tr><th scope=\"row\">{}, {}</th>", i + 1,
                            html::escape(gpus_text(shown.study.cells[row.cell])));
        for (const double share :
             {planned.exact, planned.interpolated, planned.extrapolated, planned.modelled, planned.gap})
            rows += fmt::format("<td class=\"n\">{}</td>", percent(share));
        rows += "</tr>\n";
    }
    if (rows.empty()) return {};
    std::string head = "<table><thead><tr><th>planned row</th>";
    for (const std::string_view name : {"exact", "interpolated", "extrapolated", "modelled", "gap to the bound"})
        head += fmt::format("<th class=\"n\">{}</th>", name);
    return html::wide_table(head + "</tr></thead><tbody>\n", rows);
}

}  // namespace pipeweaver::capacity::show
