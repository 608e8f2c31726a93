#include "pipeweaver/emit/html.hpp"

#include "pipeweaver/base/assert.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

// Set in embedded.S.
extern "C" {
extern const char pipeweaver_emit_report_style[], pipeweaver_emit_report_style_end[];
}

namespace pipeweaver::emit::html {

namespace {

// The text up to the next {{name}}, which goes to `name`; both are cut off the front of `text`.
std::string_view before_name(std::string_view& text, std::string_view& name) {
    const auto open = text.find("{{");
    const auto before = text.substr(0, open);
    name = {};
    text.remove_prefix(before.size());
    if (open == std::string_view::npos) return before;
    const auto close = text.find("}}");
    PIPEWEAVER_ASSERT(close != std::string_view::npos);
    name = text.substr(2, close - 2);
    text.remove_prefix(close + 2);
    return before;
}

void skip_block(std::string_view& text, std::string_view name) {
    const std::string end = fmt::format("{{{{/{}}}}}", name);
    const auto place = text.find(end);
    PIPEWEAVER_ASSERT(place != std::string_view::npos);
    text.remove_prefix(place + end.size());
}

}  // namespace

std::string style() { return {pipeweaver_emit_report_style, pipeweaver_emit_report_style_end}; }

std::string filled(std::string_view text, const Parts& parts) {
    std::string_view name;
    std::string page;
    while (true) {
        page += before_name(text, name);
        if (name.empty()) return page;
        if (name.front() == '/') continue;
        if (name.front() == '#') {
            if (!parts.contains(name.substr(1))) skip_block(text, name.substr(1));
            continue;
        }
        const auto part = parts.find(name);
        PIPEWEAVER_ASSERT(part != parts.end());
        page += part->second;
    }
}

std::string escape(std::string_view text) {
    constexpr std::string_view special = "&<>\"'";
    constexpr std::array<std::string_view, special.size()> entities{"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    std::string escaped;
    for (const char c : text) {
        const auto place = special.find(c);
        escaped += place == std::string_view::npos ? std::string_view(&c, 1) : entities[place];
    }
    return escaped;
}

std::string figure(std::string_view name, std::string_view value, std::string_view about) {
    return fmt::format("<div class=\"figure\"><dt>{}</dt><dd><strong>{}</strong><span>{}</span></dd></div>\n",
                       escape(name), escape(value), escape(about));
}

std::string fact(std::string_view name, std::string_view value) {
    return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(value));
}

std::string fact_table(const std::vector<std::string>& facts) {
    std::string html = "<table class=\"facts\"><tbody>\n";
    for (const std::string& one : facts) html += one;
    return html + "</tbody></table>\n";
}

std::string heading(std::string_view text) { return fmt::format("<h3>{}</h3>\n", escape(text)); }

std::string folded(std::string_view summary, std::string_view content, bool open) {
    return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n", open ? " open" : "", escape(summary),
                       content);
}

std::string legend_entry(std::string_view swatch, std::string_view name) {
    return fmt::format("<li><svg class=\"swatch\" viewBox=\"0 0 14 14\">{}</svg>{}</li>", swatch, escape(name));
}

namespace {

// The rows between `opening` and `closing`: see Table::first_of().
struct LongList {
    std::string opening, closing;
    std::vector<std::string> rows;
    std::string rest;
    std::vector<std::size_t> kept{};
};

std::string first_of_list(const LongList& list) {
    std::string first, rest;
    std::size_t folded_rows = 0;
    for (std::size_t i = 0; i < list.rows.size(); ++i) {
        const bool is_first = i < first_rows || std::binary_search(list.kept.begin(), list.kept.end(), i);
        (is_first ? first : rest) += list.rows[i];
        if (!is_first) ++folded_rows;
    }
    std::string html = list.opening + first + list.closing;
    if (folded_rows == 0) return html;
    return html + folded(fmt::format("{} {}", folded_rows, list.rest), list.opening + rest + list.closing, false);
}

}  // namespace

Table::Table(std::string_view classes, std::vector<Column> columns)
    : columns_(std::move(columns)), is_stack_(classes.find("stack") != std::string_view::npos) {
    opening_ = classes.empty() ? "<table><thead><tr>" : fmt::format("<table class=\"{}\"><thead><tr>", classes);
    for (const Column& one : columns_)
        opening_ +=
            fmt::format("<th{}>{}</th>", one.kind == ColumnKind::number ? " class=\"n\"" : "", escape(one.name));
    opening_ += "</tr></thead><tbody>\n";
}

void Table::add(const std::vector<std::string>& texts, std::string_view classes) { add(texts, "", classes); }

void Table::add(const std::vector<std::string>& texts, std::string_view cells, std::string_view classes) {
    std::string row = classes.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", classes);
    for (std::size_t i = 0; i < texts.size(); ++i) {
        const auto& [name, kind] = columns_[i];
        const auto column = is_stack_ ? fmt::format(" data-column=\"{}\"", escape(name)) : std::string();
        row += kind == ColumnKind::head
                   ? fmt::format("<th scope=\"row\">{}</th>", escape(texts[i]))
                   : fmt::format("<td{}{}>{}</td>", kind == ColumnKind::number ? " class=\"n\"" : "", column,
                                 escape(texts[i]));
    }
    rows_.push_back(fmt::format("{}{}</tr>\n", row, cells));
}

std::string Table::html() const { return fmt::format("{}{}</tbody></table>\n", opening_, fmt::join(rows_, "")); }

std::string Table::wide() const {
    return fmt::format("<div class=\"wide\">{}{}</tbody></table></div>\n", opening_, fmt::join(rows_, ""));
}

std::string Table::first_of(std::string rest, std::vector<std::size_t> kept) const {
    return first_of_list(
        {"<div class=\"wide\">" + opening_, "</tbody></table></div>\n", rows_, std::move(rest), std::move(kept)});
}

std::string first_items(const std::vector<std::string>& lines, std::string rest) {
    if (lines.empty()) return {};
    LongList list{"<ul class=\"not\">\n", "</ul>\n", {}, std::move(rest)};
    for (const std::string& line : lines) list.rows.push_back(fmt::format("<li>{}</li>\n", escape(line)));
    return first_of_list(list);
}

std::string row(std::string_view classes, std::string_view label, std::string_view plot) {
    return fmt::format("<div class=\"row {}\"><div class=\"label\">{}</div><div class=\"plot\">{}</div></div>\n",
                       classes, label, plot);
}

std::string color_legend(const std::vector<Colored>& entries) {
    std::string html = "<ul class=\"legend\">";
    for (const Colored& one : entries)
        html += legend_entry(fmt::format("<rect class=\"c{}\" width=\"14\" height=\"14\"/>", one.color), one.name);
    return html + "</ul>\n";
}

}  // namespace pipeweaver::emit::html
