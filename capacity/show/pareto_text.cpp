// The Pareto picture of a terminal.
#include "capacity/show/pareto.hpp"
#include "capacity/show/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace pipeweaver::capacity::show {

namespace {

constexpr std::size_t picture_columns = 70, picture_lines = 16, label_width = 9;

class Canvas {
public:
    Canvas(const Scale& x, const Scale& y) : x_(x), y_(y), text_(picture_lines, std::string(picture_columns, ' ')) {}

    std::optional<std::size_t> column(double x) const { return place(x_.part(x), picture_columns); }
    std::optional<std::size_t> line(double y) const { return place(1 - y_.part(y), picture_lines); }

    void dot(const Spot& spot) {
        const auto at = column(spot.x), on = line(spot.y);
        if (at && on) text_[*on][*at] = '.';
    }

    // The nearest free place in the line; none is left: the spot stays without.
    void number(const Spot& spot) {
        const std::string digits = std::to_string(spot.row + 1);
        const auto at = column(spot.x), on = line(spot.y);
        if (!at || !on) return;
        for (const int offset : {0, 1, -1, 2, -2, 3, -3}) {
            const auto from = static_cast<std::ptrdiff_t>(*at) + offset;
            if (from < 0 || static_cast<std::size_t>(from) + digits.size() > picture_columns) continue;
            if (!is_free(*on, static_cast<std::size_t>(from), digits.size())) continue;
            text_[*on].replace(static_cast<std::size_t>(from), digits.size(), digits);
            return;
        }
    }

    void vertical(double x) {
        if (const auto at = column(x))
            for (std::string& one : text_) one[*at] = ':';
    }
    void horizontal(double y) {
        if (const auto on = line(y)) text_[*on] = std::string(picture_columns, '-');
    }
    const std::string& operator[](std::size_t on) const { return text_[on]; }

private:
    static std::optional<std::size_t> place(double part, std::size_t length) {
        if (part < 0 || part > 1) return std::nullopt;
        return std::min(length - 1, static_cast<std::size_t>(part * static_cast<double>(length)));
    }

    // Numbers keep a blank between one another.
    bool is_free(std::size_t on, std::size_t from, std::size_t width) const {
        const std::size_t begin = from == 0 ? 0 : from - 1, end = std::min(picture_columns, from + width + 1);
        return std::none_of(text_[on].begin() + static_cast<std::ptrdiff_t>(begin),
                            text_[on].begin() + static_cast<std::ptrdiff_t>(end),
                            [](char c) { return c >= '0' && c <= '9'; });
    }

    const Scale &x_, &y_;
    std::vector<std::string> text_;
};

std::string left_labels(const Canvas& canvas, const Scale& y) {
    std::array<std::string, picture_lines> labels;
    for (const double mark : marks_on(y, 4))
        if (const auto on = canvas.line(mark)) labels[*on] = mark_text(mark);
    std::string text;
    for (std::size_t on = 0; on < picture_lines; ++on) {
        text += fmt::format("{:>{}} {}{}", labels[on], label_width, labels[on].empty() ? '|' : '+', canvas[on]);
        text.erase(text.find_last_not_of(' ') + 1);
        text += '\n';
    }
    return text;
}

// Labels below the marks, each where the one before it has ended.
std::string bottom_labels(const Canvas& canvas, const Scale& x) {
    std::string rule(picture_columns, '-'), labels;
    for (const double mark : marks_on(x, 6)) {
        const auto at = canvas.column(mark);
        if (!at) continue;
        rule[*at] = '+';
        const std::string said = mark_text(mark);
        const std::size_t from = *at + 1 < said.size() / 2 ? 0 : *at - std::min(*at, said.size() / 2);
        if (from < labels.size() + (labels.empty() ? 0 : 2)) continue;
        labels += std::string(from - labels.size(), ' ') + said;
    }
    const std::string before(label_width + 1, ' ');
    return fmt::format("{}+{}\n{} {}\n", before, rule, before, labels);
}

std::string key_text(const Plane& plane, const Canvas& canvas) {
    std::string text = "  numbers: rows that none is both sooner and cheaper than; . others";
    if (plane.most_x && canvas.column(*plane.most_x))
        text += fmt::format("; : {} {}", mark_text(*plane.most_x), plane.x_name);
    if (plane.most_y && canvas.line(*plane.most_y))
        text += fmt::format("; - {} {}", mark_text(*plane.most_y), plane.y_name);
    return text + "\n";
}

}  // namespace

std::string pareto_text(const Study& study, const Ranking& ranking) {
    const Plane plane = plane_of(study, ranking);
    if (plane.spots.empty()) return {};
    const Scale x = scale_over(xs_of(plane)), y = scale_over(ys_of(plane));
    Canvas canvas(x, y);
    if (plane.most_y) canvas.horizontal(*plane.most_y);
    if (plane.most_x) canvas.vertical(*plane.most_x);
    for (const Spot& spot : plane.spots) canvas.dot(spot);
    for (const Spot& spot : plane.spots)
        if (ranking.rows[spot.row].on_front) canvas.number(spot);
    return fmt::format("{:>{}} over {}\n", plane.y_name, label_width, plane.x_name) + left_labels(canvas, y) +
           bottom_labels(canvas, x) + key_text(plane, canvas);
}

}  // namespace pipeweaver::capacity::show
