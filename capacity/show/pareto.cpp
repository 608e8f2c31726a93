#include "capacity/show/pareto.hpp"

#include <algorithm>

namespace pipeweaver::capacity::show {

namespace {

// A limit far beyond all spots would press them together.
std::vector<double> with_limit(const Plane& plane, double Spot::*of, const std::optional<double>& limit) {
    constexpr double far = 3;
    std::vector<double> values;
    values.reserve(plane.spots.size() + 1);
    for (const Spot& spot : plane.spots) values.push_back(spot.*of);
    if (!limit || values.empty()) return values;
    const double at = *limit;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (at < *most * far && at > *least / far) values.push_back(at);
    return values;
}

}  // namespace

Plane plane_of(const Study& study, const Ranking& ranking) {
    const bool has_runs = study.training_tokens > 0;
    const bool has_usd = has_runs && ranking.has_prices;
    Plane plane{.x_name = has_runs ? "days" : "seconds a step",
                .y_name = has_usd    ? "USD"
                          : has_runs ? "GPU-hours"
                                     : "GPU-seconds a step",
                .most_x = study.constraints.days,
                .most_y = has_usd ? study.constraints.usd : std::nullopt};
    plane.spots.reserve(ranking.rows.size());
    for (std::size_t i = 0; i < ranking.rows.size(); ++i) {
        const Row& row = ranking.rows[i];
        if (row.pace.run) {
            plane.spots.push_back({i, row.pace.run->days, has_usd ? *row.pace.run->usd : row.pace.run->gpu_hours});
        } else {
            const double seconds = static_cast<double>(row.step().count()) * 1e-9;
            plane.spots.push_back({i, seconds, seconds * static_cast<double>(study.cells[row.cell].gpus)});
        }
    }
    return plane;
}

std::vector<double> xs_of(const Plane& plane) { return with_limit(plane, &Spot::x, plane.most_x); }

std::vector<double> ys_of(const Plane& plane) { return with_limit(plane, &Spot::y, plane.most_y); }

}  // namespace pipeweaver::capacity::show
