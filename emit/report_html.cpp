// Small pieces of HTML that all parts of the report use.
#include "emit/report_parts.hpp"

#include <fmt/format.h>

#include <cmath>

// Set in embedded.S.
extern "C" {
extern const char pipeweaver_emit_report_template[], pipeweaver_emit_report_template_end[];
}

namespace pipeweaver::emit::report_parts {

std::string_view page_template() { return {pipeweaver_emit_report_template, pipeweaver_emit_report_template_end}; }

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

std::string fact(std::string_view name, std::string_view value) {
    return fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", escape(name), escape(value));
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
