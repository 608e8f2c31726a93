// The cells of a study on its page, and what all figures rest on.
#include "capacity/show/page.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/html.hpp"

#include <fmt/format.h>

#include <algorithm>

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
    html::Table table("points", {html::head("layout"),
                                 html::number("step"),
                                 html::number("bound"),
                                 html::number("memory"),
                                 {"partition"},
                                 html::number("chunks a rank"),
                                 {"schedule"},
                                 {"recompute"}});
    for (const Point* point : judged_of(result))
        table.add({layout_text(*point), human(point->step), point->split ? "" : human(point->bound),
                   human(point->memory), point->partition, std::to_string(point->chunks), point->policy,
                   point->recompute});
    return table.empty() ? std::string() : table.first_of("slower");
}

std::string others_list(const CellResult& result) {
    std::vector<std::string> lines;
    const auto bounded =
        static_cast<std::size_t>(std::count_if(result.points.begin(), result.points.end(), [](const Point& point) {
            return point.status == PointStatus::bounded;
        }));
    if (bounded > 0)
        lines.push_back(
            fmt::format("{} passed over: a bound shows that they are slower, or too slow", plural(bounded, "layout")));
    for (const Reason& reason : reasons_of(result.points))
        lines.push_back(fmt::format("{} refused: {}", reason.points, reason.why));
    return html::first_items(lines, "more reasons");
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

std::string one_cell(const FoundStudy& found, std::size_t number) {
    const Cell& cell = found.study.cells[number];
    const CellResult& result = found.results[number];
    std::string name = gpus_text(cell);
    if (!found.options.empty()) name += ", " + options_text(cell, found.options);
    if (!result.why_not.empty())
        return html::folded(name + ": cannot be asked",
                            fmt::format("<p class=\"not\">{}</p>\n", html::escape(result.why_not)), false);
    const auto judged = judged_of(result);
    name += judged.empty() ? std::string(": no layout runs")
                           : fmt::format(": {}, {}", human(judged.front()->step), layout_text(*judged.front()));
    return html::folded(name, cell_facts(result) + points_table(result) + others_list(result), false);
}

// "h100-sxm, b200" or "12 values"
template <class Of>
std::string distinct(const FoundStudy& found, Of of) {
    constexpr std::size_t most = 20;
    const auto values = each_once(found.study, of);
    return values.size() <= most ? joined(values, ", ") : plural(values.size(), "value");
}

std::string price_text(const Cell& cell) {
    const double price = price_of(cell);
    return price > 0 ? fmt::format("{} {:.2f}", cell.cluster, price) : fmt::format("{} not said", cell.cluster);
}

}  // namespace

std::string cell_list(const FoundStudy& found) {
    std::string text;
    for (std::size_t i = 0; i < found.results.size(); ++i) text += one_cell(found, i);
    return text;
}

std::string study_facts(const FoundStudy& found) {
    const Study& study = found.study;
    std::vector<std::string> facts;
    const std::string asked = asked_text(study);
    if (!asked.empty()) facts.push_back(html::fact("asked", asked));
    facts.push_back(html::fact("models", distinct(found, [](const Cell& cell) { return value_of(cell, "model"); })));
    facts.push_back(html::fact("clusters", distinct(found, [](const Cell& cell) { return cell.cluster; })));
    facts.push_back(html::fact("GPUs", distinct(found, [](const Cell& cell) { return std::to_string(cell.gpus); })));
    for (const std::string& option : found.options)
        if (option != "model")
            facts.push_back(
                html::fact(option, distinct(found, [&](const Cell& cell) { return value_of(cell, option); })));
    facts.push_back(html::fact("USD of a GPU-hour", joined(each_once(study, price_text), ", ")));
    facts.push_back(html::fact("points", points_text(found.ranking)));
    facts.push_back(html::fact("steps are off by", errors_text(found) + ", on average"));
    facts.push_back(html::fact("study", fmt::format("{}, SHA-256 {}", title_of(study), study.sha256)));
    return html::fact_table(facts);
}

std::string basis_table(const FoundStudy& found) {
    html::Table table("", {html::head("planned row"), html::number("exact"), html::number("interpolated"),
                           html::number("extrapolated"), html::number("modelled"), html::number("gap to the bound")});
    for (std::size_t i = 0; i < found.ranking.rows.size(); ++i)
        if (const auto& planned = found.row(i).planned)
            table.add({fmt::format("{}, {}", i + 1, gpus_text(found.cell(found.row(i)))), percent(planned->exact),
                       percent(planned->interpolated), percent(planned->extrapolated), percent(planned->modelled),
                       percent(planned->gap)});
    return table.empty() ? std::string() : table.wide();
}

}  // namespace pipeweaver::capacity::show
