// The rows of a ranking as spots in a plane: time to the right, cost upwards.
#pragma once

#include "pipeweaver/capacity/ranking.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace pipeweaver::capacity::show {

struct Spot {
    std::size_t row = 0;  ///< among Ranking::rows
    double x = 0, y = 0;
};

/// USD over days; without prices GPU-hours over days; for a study without tokens, GPU-seconds of a step over its
/// seconds. What takes longer by its error costs more by the same part.
struct Plane {
    std::string_view x_name, y_name;
    std::vector<Spot> spots{};             ///< of all rows, in order
    std::optional<double> most_x, most_y;  ///< what constraints allow
};

[[nodiscard]] Plane plane_of(const Study& study, const Ranking& ranking);

/// What both directions span: of all spots, and of constraints that are not far from them. Pre: there are spots.
[[nodiscard]] std::vector<double> xs_of(const Plane& plane);
[[nodiscard]] std::vector<double> ys_of(const Plane& plane);

/// A picture of 70 x 16 characters and its scales: rows of the front by their number, others as dots; empty without
/// rows.
[[nodiscard]] std::string pareto_text(const Study& study, const Ranking& ranking);

}  // namespace pipeweaver::capacity::show
