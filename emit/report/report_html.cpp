// Small pieces of HTML that all parts of a plan's report use.
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

// Set in embedded.S.
extern "C" {
extern const char pipeweaver_emit_report_template[], pipeweaver_emit_report_template_end[];
}

namespace pipeweaver::emit::report_parts {

std::string filled_page(const Parts& parts) {
    Parts all = parts;
    all.emplace("style", html::style());
    return html::filled({pipeweaver_emit_report_template, pipeweaver_emit_report_template_end}, all);
}

std::string gap_figure(Duration found, Duration bound, std::string_view of) {
    return figure("gap", percent(schedule::relative_gap(found, bound)),
                  found == bound ? fmt::format("makespan {}, proven optimal for {}", human(found), of)
                                 : fmt::format("makespan {} over bound {} of {}", human(found), human(bound), of));
}

std::string caption(std::string_view name, std::string_view what, Duration makespan) {
    return fmt::format("{} <span>{}: {}</span>", escape(name), escape(what), escape(human(makespan)));
}

std::string found_fact(std::string_view name, const search::Found& found) {
    return fact(name, fmt::format("{}, gap {}; by {} in {} (ended by {}); bound {} ({}); signature {}",
                                  human(found.replay.makespan),
                                  percent(schedule::relative_gap(found.replay.makespan, found.bound)), found.strategy,
                                  plural(found.rounds, "round"), name_of(found.stop_reason), human(found.bound),
                                  found.bound_name, signature(*found.schedule, found.replay.makespan)));
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
    const auto over = row.is_alike ? times(ratio(row.step.value_or(row.time), plan)) : "";
    return html + number_cell("over plan", over) + "</tr>\n";
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
