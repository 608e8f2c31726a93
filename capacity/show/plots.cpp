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

std::string legend_of(const Shown& shown) {
    std::vector<html::Colored> entries;
    entries.reserve(shown.clusters.size());
    for (std::size_t i = 0; i < shown.clusters.size(); ++i) entries.push_back({shown.clusters[i], i % dot_colors});
    return html::color_legend(entries);
}

std::string spot_title(const Shown& shown, std::size_t place) {
    const Row& row = shown.ranking.rows[place];
    const Cell& cell = shown.study.cells[row.cell];
    std::string text = fmt::format("row {}: {}", place + 1, gpus_text(cell));
    if (!shown.options.empty()) text += "\n" + options_text(cell, shown.options);
    text += fmt::format("\n{}\nstep {} +- {:.1f} %, {} tokens/s a GPU, MFU {}",
                        layout_text(point_of(shown.results, row).as), human(row.step()), row.error_percent,
                        planner::with_commas(row.pace.tokens_per_second_per_gpu), percent(row.pace.mfu));
    if (!row.pace.run) return text;
    text +=
        fmt::format("\n{:.1f} days, {} GPU-hours", row.pace.run->days, planner::with_commas(row.pace.run->gpu_hours));
    if (row.pace.run->usd) text += fmt::format(", {} USD", planner::with_commas(*row.pace.run->usd));
    const std::string notes = notes_of(shown.study, row);
    return notes.empty() ? text : text + "\n" + notes;
}

std::string dot(const Plot& plot, double x, double y, const std::string& color, const std::string& title) {
    return fmt::format("<path class=\"dot {}\" d=\"M{}h0\"><title>{}</title></path>", color, plot.at(x, y),
                       html::escape(title));
}

// Rows of the front, the soonest first.
std::vector<Spot> front_of(const Shown& shown, const Plane& plane) {
    std::vector<Spot> front;
    for (const Spot& spot : plane.spots)
        if (shown.ranking.rows[spot.row].on_front) front.push_back(spot);
    std::sort(front.begin(), front.end(), [](const Spot& a, const Spot& b) { return a.x < b.x; });
    return front;
}

void draw_front(const Shown& shown, const Plane& plane, Plot& plot) {
    const auto front = front_of(shown, plane);
    std::string path;
    for (const Spot& spot : front) path += fmt::format("{}{}", path.empty() ? "M" : "L", plot.at(spot.x, spot.y));
    plot.svg += fmt::format("<path class=\"front\" d=\"{}\"/>", path);
    for (std::size_t i = 0; i < std::min(front.size(), most_numbered); ++i)
        plot.label(front[i].x, front[i].y, std::to_string(front[i].row + 1));
}

// A step that is longer by its error makes the run later and dearer by the same part.
void draw_errors(const Shown& shown, const Plane& plane, Plot& plot) {
    for (const Spot& spot : plane.spots) {
        const Row& row = shown.ranking.rows[spot.row];
        if (!row.on_front) continue;
        const double off = row.error_percent / 100;
        plot.svg += fmt::format("<path class=\"error {}\" d=\"M{}L{}\"/>", color_of(shown, shown.study.cells[row.cell]),
                                plot.at(spot.x * (1 - off), spot.y * (1 - off)),
                                plot.at(spot.x * (1 + off), spot.y * (1 + off)));
    }
}

// A choice of everything but the GPUs.
using SeriesKey = std::tuple<std::string, std::string>;
using Series = std::map<SeriesKey, std::vector<std::size_t>>;  // rows, the fewest GPUs first

Series series_of(const Shown& shown) {
    Series series;
    const auto& rows = shown.ranking.rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Cell& cell = shown.study.cells[rows[i].cell];
        series[{cell.cluster, options_text(cell, shown.options)}].push_back(i);
    }
    for (auto& [key, places] : series)
        std::sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
            return shown.study.cells[rows[a].cell].gpus < shown.study.cells[rows[b].cell].gpus;
        });
    return series;
}

double gpus_of(const Shown& shown, std::size_t place) {
    return static_cast<double>(shown.study.cells[shown.ranking.rows[place].cell].gpus);
}

double step_of(const Shown& shown, std::size_t place) {
    return static_cast<double>(shown.ranking.rows[place].step().count()) * 1e-9;
}

double tokens_of(const Shown& shown, std::size_t place) {
    return shown.ranking.rows[place].pace.tokens_per_second_per_gpu;
}

// Marks are the counts themselves.
std::vector<double> counts_of(const std::vector<double>& gpus) {
    auto counts = gpus;
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    return counts;
}

using Value = double (*)(const Shown&, std::size_t place);

struct Direction {
    std::string id, name;
    Value value = nullptr;
};

std::string scaling_plot(const Shown& shown, const Direction& up) {
    std::vector<double> xs, ys;
    for (std::size_t i = 0; i < shown.ranking.rows.size(); ++i) {
        xs.push_back(gpus_of(shown, i));
        ys.push_back(up.value(shown, i));
    }
    constexpr std::size_t about = 6;
    Plot plot{.id = up.id,
              .caption = up.name,
              .description = fmt::format("{} over GPUs; the table below has the figures", up.name),
              .x_name = "GPUs",
              .x = scale_over(xs),
              .y = scale_over(ys),
              .x_marks = counts_of(xs),
              .y_marks = {}};
    plot.y_marks = marks_on(plot.y, about);
    for (const auto& [key, places] : series_of(shown)) {
        std::string path;
        for (const std::size_t place : places)
            path +=
                fmt::format("{}{}", path.empty() ? "M" : "L", plot.at(gpus_of(shown, place), up.value(shown, place)));
        const std::string color = color_of(shown, shown.study.cells[shown.ranking.rows[places.front()].cell]);
        plot.svg += fmt::format("<path class=\"series {}\" d=\"{}\"/>", color, path);
        for (const std::size_t place : places)
            plot.svg += dot(plot, gpus_of(shown, place), up.value(shown, place), color, spot_title(shown, place));
    }
    return plot.html();
}

}  // namespace

std::string color_of(const Shown& shown, const Cell& cell) {
    const auto place = std::find(shown.clusters.begin(), shown.clusters.end(), cell.cluster) - shown.clusters.begin();
    return fmt::format("c{}", static_cast<std::size_t>(place) % dot_colors);
}

std::string pareto_plot(const Shown& shown) {
    const Plane plane = plane_of(shown.study, shown.ranking);
    if (plane.spots.empty()) return {};
    constexpr std::size_t about_x = 8, about_y = 6;
    Plot plot{.id = "pareto-plot",
              .caption = fmt::format("{} over {}", plane.y_name, plane.x_name),
              .description =
                  fmt::format("{} over {} of all rows; the table below has the figures", plane.y_name, plane.x_name),
              .x_name = std::string(plane.x_name),
              .x = scale_over(xs_of(plane)),
              .y = scale_over(ys_of(plane)),
              .x_marks = {},
              .y_marks = {}};
    plot.x_marks = marks_on(plot.x, about_x);
    plot.y_marks = marks_on(plot.y, about_y);
    plot.limit_x(plane.most_x);
    plot.limit_y(plane.most_y);
    draw_errors(shown, plane, plot);
    draw_front(shown, plane, plot);
    for (const Spot& spot : plane.spots)
        plot.svg += dot(plot, spot.x, spot.y, color_of(shown, shown.study.cells[shown.ranking.rows[spot.row].cell]),
                        spot_title(shown, spot.row));
    return plot.html() + legend_of(shown);
}

std::string scaling_plots(const Shown& shown) {
    if (shown.ranking.rows.empty()) return {};
    return fmt::format("<div class=\"charts\">{}{}</div>\n{}",
                       scaling_plot(shown, {"tokens-plot", "tokens a second for each GPU", tokens_of}),
                       scaling_plot(shown, {"step-plot", "seconds of a step", step_of}), legend_of(shown));
}

}  // namespace pipeweaver::capacity::show
