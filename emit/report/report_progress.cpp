// How a search went: a picture of best and bound over its rounds, and tables of its improvements.
//
// Improvements come in quick succession first and far apart later, so the picture's rounds are logarithmic: round r
// lies at log(1 + r).
#include "emit/report/report_parts.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/schedule/gap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipeweaver::emit::report_parts {

using search::Found;
using search::Improvement;

namespace {

constexpr double height = 180, margin = 14;  // pixels
constexpr double label_distance = 17;
constexpr std::size_t finder_colors = 7;

double gap(const Improvement& one) { return schedule::relative_gap(one.best, one.bound); }

// What found improvements, in the order of the first.
std::vector<std::string> finders(const Found& found) {
    std::vector<std::string> all;
    for (const Improvement& one : found.history)
        if (std::find(all.begin(), all.end(), one.found_by) == all.end()) all.push_back(one.found_by);
    return all;
}

std::size_t color(const std::vector<std::string>& finders, const std::string& name) {
    return static_cast<std::size_t>(std::find(finders.begin(), finders.end(), name) - finders.begin()) % finder_colors;
}

// Places on the picture.
class Axes {
public:
    explicit Axes(const Found& found)
        : rounds_(std::log1p(static_cast<double>(std::max<std::uint64_t>(1, found.rounds)))),
          low_(found.history.front().bound),
          span_(std::max(Duration{1}, found.history.front().best - low_)) {}

    double part(std::uint64_t round) const { return std::log1p(static_cast<double>(round)) / rounds_; }
    std::int64_t x(std::uint64_t round) const { return std::llround(static_cast<double>(axis_units) * part(round)); }
    double y(Duration time) const { return height - margin - (height - 2 * margin) * ratio(time - low_, span_); }

private:
    double rounds_;
    Duration low_, span_;
};

// A line of steps: (round, time) from then on, to the end.
std::string steps(const Axes& axes, const Found& found, Duration Improvement::*value) {
    std::string line;
    for (const Improvement& one : found.history)
        line += fmt::format("{}{}{}{:.2f}", line.empty() ? "M" : "H", axes.x(one.rounds), line.empty() ? " " : "V",
                            axes.y(one.*value));
    return line + fmt::format("H{}", axis_units);
}

// The same backwards, to close an area.
std::string steps_back(const Axes& axes, const Found& found, Duration Improvement::*value) {
    std::string line;
    for (auto one = found.history.rbegin(); one != found.history.rend(); ++one)
        line += fmt::format("V{:.2f}H{}", axes.y((*one).*value), axes.x(one->rounds));
    return line;
}

std::string dots(const Axes& axes, const Found& found, const std::vector<std::string>& names) {
    std::string html;
    const Improvement* before = nullptr;
    for (const Improvement& one : found.history) {
        const std::string gain = before == nullptr ? "" : fmt::format(", {} less", human(before->best - one.best));
        if (before == nullptr || one.best < before->best)
            html += fmt::format("<path class=\"dot c{}\" d=\"M{} {:.2f}h0\"><title>{}</title></path>",
                                color(names, one.found_by), axes.x(one.rounds), axes.y(one.best),
                                escape(fmt::format("{}\nround {}: {}{}\ngap {}", one.found_by, one.rounds,
                                                   human(one.best), gain, percent(gap(one)))));
        before = &one;
    }
    return html;
}

// The values that matter at their heights, moved apart where they would cover one another.
std::string value_labels(const Axes& axes, const Found& found) {
    const Improvement &first = found.history.front(), &last = found.history.back();
    const double start = axes.y(first.best), bound = axes.y(last.bound);
    std::vector<std::tuple<double, std::string_view, Duration>> labels{{start, "start", first.best}};
    if (last.best < first.best && last.best > last.bound)
        labels.emplace_back(std::clamp(axes.y(last.best), start + label_distance, bound - label_distance), "best",
                            last.best);
    if (last.bound < first.best)
        labels.emplace_back(bound, last.best == last.bound ? "best, bound" : "bound", last.bound);
    std::string html;
    for (const auto& [place, name, time] : labels)
        html += fmt::format("<span style=\"top:{:.1f}px\"><small>{}</small> {}</span>", place, name, human(time));
    return html;
}

std::string round_marks(const Axes& axes, std::uint64_t rounds) {
    std::vector<std::uint64_t> marks{0};
    for (std::uint64_t power = 1; power <= rounds; power *= 10)
        for (const std::uint64_t factor : {1U, 2U, 5U})
            if (factor * power <= rounds) marks.push_back(factor * power);
    std::string html = "<div class=\"marks labels\">";
    for (const std::uint64_t round : marks) {
        const double place = 100 * axes.part(round);
        html += fmt::format("<i style=\"left:{:.3f}%\">{}</i>", place,
                            place > last_label ? "" : fmt::format("{}{}", round == 0 ? "round " : "", round));
    }
    return html + "</div>";
}

std::string picture(const Found& found, const std::vector<std::string>& names) {
    const Axes axes(found);
    const std::string svg = fmt::format(
        "<svg viewBox=\"0 0 {} {:.0f}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"best makespan and "
        "bound over {}; the tables below have the figures\"><path class=\"gap\" d=\"{}{}Z\"/><path class=\"bound\" "
        "d=\"{}\"/><path class=\"known\" d=\"{}\"/>{}</svg>",
        axis_units, height, plural(found.rounds, "round"), steps(axes, found, &Improvement::best),
        steps_back(axes, found, &Improvement::bound), steps(axes, found, &Improvement::bound),
        steps(axes, found, &Improvement::best), dots(axes, found, names));
    std::vector<Colored> legend;
    legend.reserve(names.size());
    for (const std::string& name : names) legend.push_back({name, color(names, name)});
    return row("progress", value_labels(axes, found), svg) + row("rounds", "", round_marks(axes, found.rounds)) +
           color_legend(legend);
}

// What each finder gained of all that was gained.
std::string finder_table(const Found& found, const std::vector<std::string>& names) {
    Table table("finders", {head("found by"), number("improvements"), number("shorter by"), number("share")});
    const Duration all = found.history.front().best - found.history.back().best;
    for (const std::string& name : names) {
        std::size_t count = 0;
        Duration gained{};
        for (std::size_t i = 1; i < found.history.size(); ++i) {
            const Improvement &one = found.history[i], &before = found.history[i - 1];
            if (one.found_by != name || one.best == before.best) continue;
            ++count;
            gained += before.best - one.best;
        }
        if (count > 0)  // else it only found the start
            table.add({name, std::to_string(count), human(gained), percent(ratio(gained, all))});
    }
    return all == Duration{0} ? std::string() : table.html();
}

std::string improvements(const Found& found) {
    Table table("improvements", {number("round"), number("evaluations"), number("best"), number("shorter by"),
                                 number("bound"), number("gap"), "found by"});
    const Improvement* before = nullptr;
    for (const Improvement& one : found.history) {
        table.add({std::to_string(one.rounds), std::to_string(one.evaluations), human(one.best),
                   before == nullptr || one.best == before->best ? "" : human(before->best - one.best),
                   human(one.bound), fmt::format("{:.2f} %", 100 * gap(one)), one.found_by});
        before = &one;
    }
    return folded(fmt::format("the start and {}", plural(found.history.size() - 1, "improvement")), table.wide(),
                  found.history.size() <= most_rows_open / 2);
}

}  // namespace

std::string progress(const Found& found) {
    const auto names = finders(found);
    return picture(found, names) + finder_table(found, names) + improvements(found);
}

}  // namespace pipeweaver::emit::report_parts
