// The rows on a study's page, and how they are planned.
#include "capacity/show/page.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/html.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::capacity::show {

namespace html = emit::html;

namespace {

constexpr std::size_t commands_shown = 10;

using planner::with_commas;

struct PageColumn {
    std::string name;
    bool is_number = true;
    std::vector<std::string> texts{};  // of all rows
};

// A text of each row for which `of` has one.
template <class Of>
PageColumn column(const Shown& shown, std::string_view name, bool is_number, Of of) {
    PageColumn column{std::string(name), is_number, {}};
    for (std::size_t i = 0; i < shown.ranking.rows.size(); ++i) column.texts.push_back(of(i, shown.ranking.rows[i]));
    return column;
}

std::vector<PageColumn> columns_of_way(const Shown& shown) {
    const auto cell = [&](const Row& row) -> const Cell& { return shown.study.cells[row.cell]; };
    std::vector<PageColumn> all;
    all.push_back(column(shown, "row", true, [](std::size_t i, const Row&) { return std::to_string(i + 1); }));
    all.push_back(column(shown, "answers", false, [&](std::size_t i, const Row&) {
        return joined(answers_of(shown.study, shown.ranking, i), ", ");
    }));
    for (const std::string& option : shown.options)
        all.push_back(
            column(shown, option, false, [&](std::size_t, const Row& row) { return value_of(cell(row), option); }));
    all.push_back(column(shown, "cluster", false, [&](std::size_t, const Row& row) { return cell(row).cluster; }));
    all.push_back(
        column(shown, "GPUs", true, [&](std::size_t, const Row& row) { return std::to_string(cell(row).gpus); }));
    all.push_back(column(shown, "layout", false,
                         [&](std::size_t, const Row& row) { return layout_text(point_of(shown.results, row).as); }));
    return all;
}

std::vector<PageColumn> columns_of_pace(const Shown& shown) {
    std::vector<PageColumn> all;
    all.push_back(
        column(shown, "launch flags", true, [](std::size_t, const Row& row) { return human(row.flags_step); }));
    all.push_back(column(shown, "planned", true, [](std::size_t, const Row& row) {
        return row.planned ? human(row.planned->step) : std::string();
    }));
    all.push_back(column(shown, "tokens/s a GPU", true,
                         [](std::size_t, const Row& row) { return with_commas(row.pace.tokens_per_second_per_gpu); }));
    all.push_back(column(shown, "samples/s", true, [](std::size_t, const Row& row) {
        return fmt::format("{:.4g}", row.pace.samples_per_second);
    }));
    all.push_back(column(shown, "TFLOP/s a GPU", true,
                         [](std::size_t, const Row& row) { return fmt::format("{:.0f}", row.pace.tflops_per_gpu); }));
    all.push_back(column(shown, "MFU", true, [](std::size_t, const Row& row) { return percent(row.pace.mfu); }));
    return all;
}

std::vector<PageColumn> columns_of_cost(const Shown& shown) {
    const auto of_run = [&](std::string_view name, auto text) {
        return column(shown, name, true, [text](std::size_t, const Row& row) {
            return row.pace.run ? text(*row.pace.run) : std::string();
        });
    };
    using Run = planner::TrainingCost;
    std::vector<PageColumn> all;
    all.push_back(of_run("days", [](const Run& run) { return fmt::format("{:.1f}", run.days); }));
    all.push_back(of_run("GPU-hours", [](const Run& run) { return with_commas(run.gpu_hours); }));
    all.push_back(of_run("USD", [](const Run& run) { return run.usd ? with_commas(*run.usd) : std::string(); }));
    all.push_back(of_run("kWh", [](const Run& run) { return run.kwh ? with_commas(*run.kwh) : std::string(); }));
    all.push_back(column(shown, "GiB left", true,
                         [](std::size_t, const Row& row) { return fmt::format("{:.1f}", gib(row.memory_left)); }));
    all.push_back(column(shown, "off by", true,
                         [](std::size_t, const Row& row) { return fmt::format("{:.1f} %", row.error_percent); }));
    all.push_back(
        column(shown, "notes", false, [&](std::size_t, const Row& row) { return notes_of(shown.study, row); }));
    return all;
}

// Those that have a text in some row.
std::vector<PageColumn> columns_of(const Shown& shown) {
    auto all = columns_of_way(shown);
    for (auto* more : {&columns_of_pace, &columns_of_cost})
        for (PageColumn& one : more(shown)) all.push_back(std::move(one));
    std::erase_if(all, [](const PageColumn& one) {
        return std::all_of(one.texts.begin(), one.texts.end(), [](const std::string& text) { return text.empty(); });
    });
    return all;
}

std::vector<std::size_t> answer_places(const Ranking& ranking) {
    std::vector<std::size_t> places;
    for (const auto& answer : {ranking.answers.fewest, ranking.answers.cheapest, ranking.answers.fastest})
        if (answer) places.push_back(*answer);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    return places;
}

std::string command_of(const Shown& shown, std::size_t place) {
    const Row& row = shown.ranking.rows[place];
    const std::string answers = joined(answers_of(shown.study, shown.ranking, place), ", ");
    return fmt::format("<p class=\"prints\">row {}{}: {}, {}</p>\n<pre class=\"command\">{}</pre>\n", place + 1,
                       answers.empty() ? "" : fmt::format(" ({})", answers),
                       html::escape(gpus_text(shown.study.cells[row.cell])),
                       html::escape(layout_text(point_of(shown.results, row).as)), html::escape(row.command));
}

}  // namespace

std::string row_table(const Shown& shown) {
    const auto columns = columns_of(shown);
    html::LongList list{"<div class=\"wide\"><table class=\"rows stack\"><thead><tr>",
                        "</tbody></table></div>\n",
                        {},
                        "more rows",
                        answer_places(shown.ranking)};
    for (const PageColumn& column : columns)
        list.opening += fmt::format("<th{}>{}</th>", column.is_number ? " class=\"n\"" : "", html::escape(column.name));
    list.opening += "</tr></thead><tbody>\n";
    for (std::size_t i = 0; i < shown.ranking.rows.size(); ++i) {
        std::string row = std::binary_search(list.kept.begin(), list.kept.end(), i) ? "<tr class=\"best\">" : "<tr>";
        for (const PageColumn& column : columns)
            row += column.is_number ? html::number_cell(column.name, column.texts[i])
                                    : html::cell(column.name, column.texts[i]);
        list.rows.push_back(row + "</tr>\n");
    }
    return html::first_of(list);
}

std::string row_commands(const Shown& shown) {
    const auto answers = answer_places(shown.ranking);
    std::string text, others;
    std::size_t count = 0;
    for (const std::size_t place : answers) text += command_of(shown, place);
    for (std::size_t i = 0; i < shown.ranking.rows.size() && i < commands_shown; ++i) {
        if (std::binary_search(answers.begin(), answers.end(), i)) continue;
        others += command_of(shown, i);
        ++count;
    }
    if (count > 0)
        text += html::folded(fmt::format("{} of the next rows", plural(count, "command")), others, text.empty());
    return text;
}

}  // namespace pipeweaver::capacity::show
