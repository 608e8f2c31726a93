// The rows on a study's page, and how they are planned.
#include "capacity/show/page.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/emit/html.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::capacity::show {

namespace html = emit::html;

namespace {

constexpr std::size_t commands_shown = 10;

struct PageColumn {
    html::Column column;
    std::vector<std::string> texts{};  // of all rows
};

// Those that have a text in some row.
std::vector<PageColumn> columns_of(const FoundStudy& found) {
    std::vector<PageColumn> all;
    const auto add = [&](std::string_view name, bool is_word, const auto& text) {
        PageColumn one{{std::string(name), is_word ? html::ColumnKind::text : html::ColumnKind::number}, {}};
        for (std::size_t i = 0; i < found.ranking.rows.size(); ++i) one.texts.push_back(text(FoundRow{found, i}));
        if (std::any_of(one.texts.begin(), one.texts.end(), [](const auto& said) { return !said.empty(); }))
            all.push_back(std::move(one));
    };
    for (const RowFact& fact : row_facts())
        if (fact.page == RowFact::by_option)
            for (const std::string& option : found.options)
                add(option, true, [&](const FoundRow& of) { return value_of(of.cell, option); });
        else if (fact.page != RowFact::nowhere)
            add(fact.page, fact.is_word, fact.text);
    return all;
}

std::vector<std::size_t> answer_places(const Ranking& ranking) {
    auto places = ranking.answers.places();
    std::sort(places.begin(), places.end());
    return places;
}

std::string command_of(const FoundStudy& found, std::size_t place) {
    const Row& row = found.row(place);
    const std::string answers = answers_text(found, place);
    return fmt::format("<p class=\"prints\">row {}{}: {}, {}</p>\n<pre class=\"command\">{}</pre>\n", place + 1,
                       answers.empty() ? "" : fmt::format(" ({})", answers), html::escape(gpus_text(found.cell(row))),
                       html::escape(layout_text(found.point(row))), html::escape(row.command));
}

}  // namespace

std::string row_table(const FoundStudy& found) {
    const auto answers = answer_places(found.ranking);
    std::vector<html::Column> columns;
    const auto all = columns_of(found);
    for (const PageColumn& one : all) columns.push_back(one.column);
    html::Table table("rows stack", std::move(columns));
    for (std::size_t i = 0; i < found.ranking.rows.size(); ++i) {
        std::vector<std::string> texts;
        for (const PageColumn& one : all) texts.push_back(one.texts[i]);
        table.add(texts, std::binary_search(answers.begin(), answers.end(), i) ? "best" : "");
    }
    return table.first_of("more rows", answers);
}

std::string row_commands(const FoundStudy& found) {
    const auto answers = answer_places(found.ranking);
    std::string text, others;
    std::size_t count = 0;
    for (const std::size_t place : answers) text += command_of(found, place);
    for (std::size_t i = 0; i < found.ranking.rows.size() && i < commands_shown; ++i) {
        if (std::binary_search(answers.begin(), answers.end(), i)) continue;
        others += command_of(found, i);
        ++count;
    }
    if (count > 0)
        text += html::folded(fmt::format("{} of the next rows", plural(count, "command")), others, text.empty());
    return text;
}

}  // namespace pipeweaver::capacity::show
