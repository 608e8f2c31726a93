// A plot's frame: marks, grid, names of its directions. Horizontally an SVG stretches to the width there is; texts are
// HTML beside it and are never stretched.
#include "capacity/show/page.hpp"
#include "pipeweaver/emit/html.hpp"

#include <fmt/format.h>

namespace pipeweaver::capacity::show {

namespace html = emit::html;

namespace {

// Marks nearer to one another than this many pixels have one label.
constexpr double least_between = 18;

std::string grid(const Plot& plot) {
    std::string path;
    for (const double mark : plot.y_marks) path += fmt::format("M0 {:.2f}H{}", plot.down(mark), html::axis_units);
    return fmt::format("<path class=\"grid\" d=\"{}\"/>", path);
}

std::string left_marks(const Plot& plot) {
    std::string text;
    double last = 2 * Plot::height;
    for (const double mark : plot.y_marks) {
        const double place = plot.down(mark);
        if (last - place < least_between) continue;
        text += fmt::format("<span style=\"top:{:.1f}px\">{}</span>", place, mark_text(mark));
        last = place;
    }
    return text;
}

// Near the right end a label stands before its mark.
std::string bottom_marks(const Plot& plot, bool with_labels) {
    constexpr double label_percent = 9;
    std::string text = with_labels ? "<div class=\"marks labels\">" : "<div class=\"marks\">";
    double free_from = 0;
    for (const double mark : plot.x_marks) {
        const double place = 100 * plot.x.part(mark);
        const bool is_before = place > html::last_label;
        const double from = is_before ? place - label_percent : place;
        const bool has_room = with_labels && from >= free_from;
        if (has_room) free_from = from + label_percent;
        text += fmt::format("<i{} style=\"left:{:.3f}%\">{}</i>", is_before && with_labels ? " class=\"before\"" : "",
                            place, has_room ? mark_text(mark) : std::string());
    }
    return text + "</div>";
}

}  // namespace

double Plot::across(double value) const { return x.part(value) * static_cast<double>(html::axis_units); }

double Plot::down(double value) const { return height * (1 - y.part(value)); }

std::string Plot::at(double x_value, double y_value) const {
    return fmt::format("{:.0f} {:.2f}", across(x_value), down(y_value));
}

void Plot::label(double x_value, double y_value, std::string_view text) {
    labels += fmt::format("<b class=\"place\" style=\"left:{:.2f}%;top:{:.1f}px\">{}</b>", 100 * x.part(x_value),
                          down(y_value), html::escape(text));
}

void Plot::limit_x(const std::optional<double>& value) {
    if (value && x.part(*value) >= 0 && x.part(*value) <= 1)
        svg += fmt::format("<path class=\"limit\" d=\"M{:.0f} 0V{}\"/>", across(*value), height);
}

void Plot::limit_y(const std::optional<double>& value) {
    if (value && y.part(*value) >= 0 && y.part(*value) <= 1)
        svg += fmt::format("<path class=\"limit\" d=\"M0 {:.2f}H{}\"/>", down(*value), html::axis_units);
}

std::string Plot::html() const {
    const std::string picture = fmt::format(
        "{}<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{}\">{}{}</svg>{}",
        bottom_marks(*this, false), html::axis_units, height, html::escape(description), grid(*this), svg, labels);
    return fmt::format("<figure id=\"{}\"><figcaption>{}</figcaption>\n{}{}</figure>\n", id, html::escape(caption),
                       html::row("chart", left_marks(*this), picture),
                       html::row("rounds", html::escape(x_name), bottom_marks(*this, true)));
}

}  // namespace pipeweaver::capacity::show
