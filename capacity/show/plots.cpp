// The plots of a study's page.
#include "capacity/show/page.hpp"
#include "capacity/show/pareto.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emit/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace pipeweaver::capacity::show {

namespace html = emit::html;

namespace {

constexpr std::size_t dot_colors = 7;  // of dots, in the style sheet
constexpr std::size_t most_numbered = 40;

// The class of a cluster's colour: "c0".
std::string color_of(const FoundStudy& found, const Cell& cell) {
    const auto place = std::find(found.clusters.begin(), found.clusters.end(), cell.cluster) - found.clusters.begin();
    return fmt::format("c{}", static_cast<std::size_t>(place) % dot_colors);
}

std::string legend_of(const FoundStudy& found) {
    std::vector<html::Colored> entries;
    entries.reserve(found.clusters.size());
    for (std::size_t i = 0; i < found.clusters.size(); ++i) entries.push_back({found.clusters[i], i % dot_colors});
    return html::color_legend(entries);
}

std::string spot_title(const FoundStudy& found, std::size_t place) {
    const Row& row = found.row(place);
    const Cell& cell = found.cell(row);
    std::string text = fmt::format("row {}: {}", place + 1, gpus_text(cell));
    if (!found.options.empty()) text += "\n" + options_text(cell, found.options);
    text += fmt::format("\n{}\nstep {} +- {:.1f} %, {} tokens/s a GPU, MFU {}", layout_text(found.point(row)),
                        human(row.step()), row.error_percent, planner::with_commas(row.pace.tokens_per_second_per_gpu),
                        percent(row.pace.mfu));
    if (!row.pace.run) return text;
    text +=
        fmt::format("\n{:.1f} days, {} GPU-hours", row.pace.run->days, planner::with_commas(row.pace.run->gpu_hours));
    if (row.pace.run->usd) text += fmt::format(", {} USD", planner::with_commas(*row.pace.run->usd));
    const std::string notes = notes_of(found.study, row);
    return notes.empty() ? text : text + "\n" + notes;
}

std::string dot(const Plot& plot, double x, double y, const std::string& color, const std::string& title) {
    return fmt::format("<path class=\"dot {}\" d=\"M{}h0\"><title>{}</title></path>", color, plot.at(x, y),
                       html::escape(title));
}

// Rows of the front, the soonest first.
std::vector<Spot> front_of(const FoundStudy& found, const Plane& plane) {
    std::vector<Spot> front;
    for (const Spot& spot : plane.spots)
        if (found.row(spot.row).on_front) front.push_back(spot);
    std::sort(front.begin(), front.end(), [](const Spot& a, const Spot& b) { return a.x < b.x; });
    return front;
}

void draw_front(const FoundStudy& found, const Plane& plane, Plot& plot) {
    const auto front = front_of(found, plane);
    std::string path;
    for (const Spot& spot : front) path += fmt::format("{}{}", path.empty() ? "M" : "L", plot.at(spot.x, spot.y));
    plot.svg += fmt::format("<path class=\"front\" d=\"{}\"/>", path);
    for (std::size_t i = 0; i < std::min(front.size(), most_numbered); ++i)
        plot.label(front[i].x, front[i].y, std::to_string(front[i].row + 1));
}

// A step that is longer by its error makes the run later and dearer by the same part.
void draw_errors(const FoundStudy& found, const Plane& plane, Plot& plot) {
    for (const Spot& spot : plane.spots) {
        const Row& row = found.row(spot.row);
        if (!row.on_front) continue;
        const double off = row.error_percent / 100;
        plot.svg += fmt::format("<path class=\"error {}\" d=\"M{}L{}\"/>", color_of(found, found.cell(row)),
                                plot.at(spot.x * (1 - off), spot.y * (1 - off)),
                                plot.at(spot.x * (1 + off), spot.y * (1 + off)));
    }
}

// A choice of everything but the GPUs.
using SeriesKey = std::tuple<std::string, std::string>;
using Series = std::map<SeriesKey, std::vector<std::size_t>>;  // rows, the fewest GPUs first

Series series_of(const FoundStudy& found) {
    Series series;
    const auto& rows = found.ranking.rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Cell& cell = found.cell(rows[i]);
        series[{cell.cluster, options_text(cell, found.options)}].push_back(i);
    }
    for (auto& [key, places] : series)
        std::sort(places.begin(), places.end(),
                  [&](std::size_t a, std::size_t b) { return found.cell(rows[a]).gpus < found.cell(rows[b]).gpus; });
    return series;
}

double gpus_of(const FoundStudy& found, std::size_t place) {
    return static_cast<double>(found.cell(found.row(place)).gpus);
}

double step_of(const FoundStudy& found, std::size_t place) {
    return static_cast<double>(found.row(place).step().count()) * 1e-9;
}

double tokens_of(const FoundStudy& found, std::size_t place) { return found.row(place).pace.tokens_per_second_per_gpu; }

// Marks are the counts themselves.
std::vector<double> counts_of(const std::vector<double>& gpus) {
    auto counts = gpus;
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    return counts;
}

using Value = double (*)(const FoundStudy&, std::size_t place);

struct Direction {
    std::string id, name;
    Value value = nullptr;
};

std::string scaling_plot(const FoundStudy& found, const Direction& up) {
    std::vector<double> xs, ys;
    for (std::size_t i = 0; i < found.ranking.rows.size(); ++i) {
        xs.push_back(gpus_of(found, i));
        ys.push_back(up.value(found, i));
    }
    constexpr std::size_t about = 6;
    Plot plot{.id = up.id,
              .caption = up.name,
              .description = fmt::format("{} over GPUs; the table below has the figures", up.name),
              .x_name = "GPUs",
              .x = scale_over(xs),
              .y = scale_over(ys),
              .x_marks = counts_of(xs)};
    plot.y_marks = marks_on(plot.y, about);
    for (const auto& [key, places] : series_of(found)) {
        std::string path;
        for (const std::size_t place : places)
            path +=
                fmt::format("{}{}", path.empty() ? "M" : "L", plot.at(gpus_of(found, place), up.value(found, place)));
        const std::string color = color_of(found, found.cell(found.row(places.front())));
        plot.svg += fmt::format("<path class=\"series {}\" d=\"{}\"/>", color, path);
        for (const std::size_t place : places)
            plot.svg += dot(plot, gpus_of(found, place), up.value(found, place), color, spot_title(found, place));
    }
    return plot.html();
}

}  // namespace

std::string pareto_plot(const FoundStudy& found) {
    const Plane plane = plane_of(found.study, found.ranking);
    if (plane.spots.empty()) return {};
    constexpr std::size_t about_x = 8, about_y = 6;
    Plot plot{.id = "pareto-plot",
              .caption = fmt::format("{} over {}", plane.y_name, plane.x_name),
              .description =
                  fmt::format("{} over {} of all rows; the table below has the figures", plane.y_name, plane.x_name),
              .x_name = std::string(plane.x_name),
              .x = scale_over(xs_of(plane)),
              .y = scale_over(ys_of(plane))};
    plot.x_marks = marks_on(plot.x, about_x);
    plot.y_marks = marks_on(plot.y, about_y);
    plot.limit_x(plane.most_x);
    plot.limit_y(plane.most_y);
    draw_errors(found, plane, plot);
    draw_front(found, plane, plot);
    for (const Spot& spot : plane.spots)
        plot.svg +=
            dot(plot, spot.x, spot.y, color_of(found, found.cell(found.row(spot.row))), spot_title(found, spot.row));
    return plot.html() + legend_of(found);
}

std::string scaling_plots(const FoundStudy& found) {
    if (found.ranking.rows.empty()) return {};
    return fmt::format("<div class=\"charts\">{}{}</div>\n{}",
                       scaling_plot(found, {"tokens-plot", "tokens a second for each GPU", tokens_of}),
                       scaling_plot(found, {"step-plot", "seconds of a step", step_of}), legend_of(found));
}

}  // namespace pipeweaver::capacity::show
