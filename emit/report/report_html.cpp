// Small pieces of HTML that all parts of the report use.
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

// Set in embedded.S.
extern "C" {
extern const char pipeweaver_emit_report_template[], pipeweaver_emit_report_template_end[];
}

namespace pipeweaver::emit::report_parts {

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

std::string filled_page(const Parts& parts) {
    std::string_view text{pipeweaver_emit_report_template, pipeweaver_emit_report_template_end}, name;
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
    std::string escaped;
    for (const char c : text) switch (c) {
            case '&':
                escaped += "&amp;";
                break;
            case '<':
                escaped += "&lt;";
                break;
            case '>':
                escaped += "&gt;";
                break;
            case '"':
                escaped += "&quot;";
                break;
            case '\'':
                escaped += "&#39;";
                break;
            default:
                escaped += c;
        }
    return escaped;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string times(double ratio) { return fmt::format("{:.3f}x", ratio); }

std::string plural(std::size_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : noun.ends_with("ch") ? "es" : "s");
}

double ratio(Duration a, Duration b) { return static_cast<double>(a.count()) / static_cast<double>(b.count()); }

std::string figure(std::string_view name, std::string_view value, std::string_view about) {
    return fmt::format("<div class=\"figure\"><dt>{}</dt><dd><strong>{}</strong><span>{}</span></dd></div>\n",
                       escape(name), escape(value), escape(about));
}

std::string gap_figure(Duration found, Duration bound, std::string_view of) {
    return figure("gap", percent(schedule::relative_gap(found, bound)),
                  found == bound ? fmt::format("makespan {}, proven optimal for {}", human(found), of)
                                 : fmt::format("makespan {} over bound {} of {}", human(found), human(bound), of));
}

std::string caption(std::string_view name, std::string_view what, Duration makespan) {
    return fmt::format("{} <span>{}: {}</span>", escape(name), escape(what), escape(human(makespan)));
}

std::string fact(std::string_view name, std::string_view value) {
    return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(value));
}

std::string fact_table(const std::vector<std::string>& facts) {
    std::string html = "<table class=\"facts\"><tbody>\n";
    for (const std::string& one : facts) html += one;
    return html + "</tbody></table>\n";
}

std::string found_fact(std::string_view name, const search::Found& found) {
    return fact(name, fmt::format("{}, gap {}; by {} in {} (ended by {}); bound {} ({}); signature {}",
                                  human(found.replay.makespan),
                                  percent(schedule::relative_gap(found.replay.makespan, found.bound)), found.strategy,
                                  plural(found.rounds, "round"), name_of(found.stop_reason), human(found.bound),
                                  found.bound_name, signature(*found.schedule, found.replay.makespan)));
}

std::string heading(std::string_view text) { return fmt::format("<h3>{}</h3>\n", escape(text)); }

std::string folded(std::string_view summary, std::string_view content, bool open) {
    return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n", open ? " open" : "", escape(summary),
                       content);
}

std::string legend_entry(std::string_view swatch, std::string_view name) {
    return fmt::format("<li><svg class=\"swatch\" viewBox=\"0 0 14 14\">{}</svg>{}</li>", swatch, escape(name));
}

std::string cell(std::string_view column, std::string_view text) {
    return fmt::format("<td data-column=\"{}\">{}</td>", escape(column), escape(text));
}

std::string number_cell(std::string_view column, std::string_view text) {
    return fmt::format("<td class=\"n\" data-column=\"{}\">{}</td>", escape(column), escape(text));
}

std::string wide_table(std::string_view opening, std::string_view rows) {
    return fmt::format("<div class=\"wide\">{}{}</tbody></table></div>\n", opening, rows);
}

std::string first_of(const LongList& list) {
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

std::string compared_row(const Compared& row, Duration plan, bool best) {
    constexpr std::array<std::string_view, 3> all{"partition", "schedule", "recompute"};
    const std::span columns = row.names.size() == 1 ? std::span(all).subspan(1, 1) : std::span(all);
    std::string html = best ? "<tr class=\"best\">" : "<tr>";
    for (std::size_t i = 0; i < row.names.size(); ++i) html += cell(columns[i], row.names[i]);
    if (row.chunks) html += number_cell("chunks a rank", std::to_string(*row.chunks));
    html += number_cell(row.step ? "makespan" : "step", human(row.time));
    html += number_cell("bound", row.bound ? human(*row.bound) : "");
    html += number_cell("gap", row.bound ? percent(schedule::relative_gap(row.time, *row.bound)) : "");
    if (row.step) html += number_cell("step", human(*row.step));
    return html + number_cell("over plan", times(ratio(row.step.value_or(row.time), plan))) + "</tr>\n";
}

std::string row(std::string_view classes, std::string_view label, std::string_view plot) {
    return fmt::format("<div class=\"row {}\"><div class=\"label\">{}</div><div class=\"plot\">{}</div></div>\n",
                       classes, label, plot);
}

std::string stacked_bar(const std::vector<BarPart>& parts, std::string_view description) {
    std::string bar = fmt::format(
        "<svg class=\"stack\" viewBox=\"0 0 1000000 20\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">",
        escape(description));
    std::int64_t from = 0;
    for (const BarPart& part : parts) {
        const std::int64_t width = std::llround(part.share * 1e6);
        if (width > 0)
            bar +=
                fmt::format("<rect class=\"c{}\" x=\"{}\" y=\"0\" width=\"{}\" height=\"20\"><title>{}</title></rect>",
                            part.color, from, width, escape(part.hover));
        from += width;
    }
    return bar + "</svg>";
}

}  // namespace pipeweaver::emit::report_parts
