// Values on a grid with holes: found by position, and estimated between and beyond the points.
//
// The method (GEMM and attention share it), with coordinates in logarithms:
//   1. a query on a point                         -> its value
//   2. every coordinate on its axis, no point     -> mean of the 1-D interpolations along each axis through the query
//                                                    (the other coordinates fixed); weight of the axis, times 0.15
//                                                    where points lie on one side only and the value is held
//   3. a coordinate off its axis                  -> linear between the two next axis positions, each found by 1-3;
//                                                    beyond the axis the last value is held
// An axis may have classes: positions of another class than the query's are passed over.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace pipeweaver::costdb {

struct Estimate {
    double value = 0;
    bool beyond = false;            ///< a value was held beyond the points
    bool off_grid = false;          ///< a coordinate was on no axis position
    std::int64_t exact_index = -1;  ///< of the point hit, as given to the constructor
};

template <std::size_t D>
class SparseGrid {
public:
    using Key = std::array<std::int64_t, D>;
    /// Class of a coordinate on an axis; positions of another class are passed over.
    using ClassOf = int (*)(std::size_t axis, std::int64_t coordinate);

    struct Point {
        Key at{};
        double value = 0;
    };

    static int one_class(std::size_t, std::int64_t) { return 0; }
    static constexpr std::array<double, D> equal_weights() {
        std::array<double, D> weights{};
        for (auto& w : weights) w = 1;
        return weights;
    }

    SparseGrid() = default;

    /// Pre: no two points at the same place, all coordinates >= 1, fewer than 2^20 positions on an axis.
    /// `bracket_order`: axes by which off-grid queries are split, outermost first.
    SparseGrid(std::vector<Point> points, Key bracket_order, ClassOf class_of = one_class,
               std::array<double, D> weights = equal_weights());

    bool empty() const { return values_.empty(); }
    const std::vector<std::int64_t>& axis(std::size_t a) const { return axes_[a]; }

    /// The estimate at `at`, or nothing where the points offer none (then see nearest()).
    std::optional<Estimate> estimate(const Key& at) const;

    /// Value of the point that is nearest in logarithms; ties by position. Pre: !empty(). Linear in the points.
    Estimate nearest(const Key& at) const;

private:
    static constexpr std::int64_t none = -1;
    using Position = std::array<std::int64_t, D>;  // index on each axis, or none

    std::int64_t cell(const Position& position) const;
    std::int64_t find(const Position& position) const;  // index of the point or none
    std::int64_t step(std::size_t a, std::int64_t from, int direction, std::int64_t coordinate) const;
    std::optional<Estimate> at_positions(const Key& at, const Position& position) const;
    std::optional<Estimate> along(std::size_t a, const Key& at, Position position) const;
    std::optional<Estimate> split(std::size_t a, const Key& at) const;
    static Estimate between(double x, double x0, const Estimate& y0, double x1, const Estimate& y1);

    std::array<std::vector<std::int64_t>, D> axes_;
    std::array<std::vector<double>, D> logs_;
    std::vector<Point> values_;
    std::vector<std::int64_t> cells_;  // sorted cells of the points ...
    std::vector<std::int64_t> order_;  // ... and which point lies there
    std::vector<std::int32_t> dense_;  // or, on a full enough grid, the point of every cell
    Key bracket_order_{};
    ClassOf class_of_ = one_class;
    std::array<double, D> weights_ = equal_weights();
};

template <std::size_t D>
SparseGrid<D>::SparseGrid(std::vector<Point> points, Key bracket_order, ClassOf class_of, std::array<double, D> weights)
    : values_(std::move(points)), bracket_order_(bracket_order), class_of_(class_of), weights_(weights) {
    std::size_t volume = 1;
    for (std::size_t a = 0; a < D; ++a) {
        for (const auto& point : values_) axes_[a].push_back(point.at[a]);
        std::sort(axes_[a].begin(), axes_[a].end());
        axes_[a].erase(std::unique(axes_[a].begin(), axes_[a].end()), axes_[a].end());
        for (const auto x : axes_[a]) logs_[a].push_back(std::log(static_cast<double>(x)));
        volume *= std::max<std::size_t>(axes_[a].size(), 1);
    }
    const bool is_dense = volume <= 16 * values_.size() + 1024;
    if (is_dense) dense_.assign(volume, -1);
    std::vector<std::pair<std::int64_t, std::int64_t>> placed;
    for (std::size_t i = 0; i < values_.size(); ++i) {
        Position position;
        for (std::size_t a = 0; a < D; ++a)
            position[a] = std::lower_bound(axes_[a].begin(), axes_[a].end(), values_[i].at[a]) - axes_[a].begin();
        const auto where = cell(position);
        if (is_dense)
            dense_[static_cast<std::size_t>(where)] = static_cast<std::int32_t>(i);
        else
            placed.emplace_back(where, static_cast<std::int64_t>(i));
    }
    std::sort(placed.begin(), placed.end());
    for (const auto& [where, i] : placed) {
        cells_.push_back(where);
        order_.push_back(i);
    }
}

template <std::size_t D>
std::int64_t SparseGrid<D>::cell(const Position& position) const {
    std::int64_t result = 0;
    for (std::size_t a = 0; a < D; ++a) result = result * static_cast<std::int64_t>(axes_[a].size()) + position[a];
    return result;
}

template <std::size_t D>
std::int64_t SparseGrid<D>::find(const Position& position) const {
    const auto where = cell(position);
    if (!dense_.empty()) return dense_[static_cast<std::size_t>(where)];
    const auto found = std::lower_bound(cells_.begin(), cells_.end(), where);
    return found == cells_.end() || *found != where ? none : order_[static_cast<std::size_t>(found - cells_.begin())];
}

/// The next position from `from` in `direction` that has the class of `coordinate`, or none.
template <std::size_t D>
std::int64_t SparseGrid<D>::step(std::size_t a, std::int64_t from, int direction, std::int64_t coordinate) const {
    const auto wanted = class_of_(a, coordinate);
    const auto size = static_cast<std::int64_t>(axes_[a].size());
    for (auto p = from + direction; p >= 0 && p < size; p += direction)
        if (class_of_(a, axes_[a][static_cast<std::size_t>(p)]) == wanted) return p;
    return none;
}

template <std::size_t D>
std::optional<Estimate> SparseGrid<D>::estimate(const Key& at) const {
    Position position;
    for (std::size_t a = 0; a < D; ++a) {
        const auto found = std::lower_bound(axes_[a].begin(), axes_[a].end(), at[a]);
        position[a] = found == axes_[a].end() || *found != at[a] ? none : found - axes_[a].begin();
    }
    for (const auto a : bracket_order_)
        if (position[static_cast<std::size_t>(a)] == none) return split(static_cast<std::size_t>(a), at);
    return at_positions(at, position);
}

template <std::size_t D>
std::optional<Estimate> SparseGrid<D>::at_positions(const Key& at, const Position& position) const {
    if (const auto hit = find(position); hit != none)
        return Estimate{.value = values_[static_cast<std::size_t>(hit)].value, .exact_index = hit};
    constexpr double weight_beyond = 0.15;
    double sum = 0;
    double weights = 0;
    bool beyond = true;
    for (std::size_t a = 0; a < D; ++a) {
        const auto part = along(a, at, position);
        if (!part) continue;
        const double weight = weights_[a] * (part->beyond ? weight_beyond : 1);
        sum += weight * part->value;
        weights += weight;
        beyond = beyond && part->beyond;
    }
    if (weights <= 0) return std::nullopt;
    return Estimate{.value = sum / weights, .beyond = beyond};
}

/// Between the next points on the line through `position` along axis `a`.
template <std::size_t D>
std::optional<Estimate> SparseGrid<D>::along(std::size_t a, const Key& at, Position position) const {
    const auto here = position[a];
    std::array<std::int64_t, 2> point{none, none};
    std::array<double, 2> x{};
    for (const int side : {0, 1}) {
        auto p = here;
        const auto s = static_cast<std::size_t>(side);
        while (point[s] == none && (p = step(a, p, side == 0 ? -1 : 1, at[a])) != none) {
            position[a] = p;
            point[s] = find(position);
            x[s] = logs_[a][static_cast<std::size_t>(p)];
        }
    }
    const auto value = [&](std::size_t s) { return values_[static_cast<std::size_t>(point[s])].value; };
    if (point[0] == none && point[1] == none) return std::nullopt;
    if (point[0] == none) return Estimate{.value = value(1), .beyond = true};
    if (point[1] == none) return Estimate{.value = value(0), .beyond = true};
    return between(logs_[a][static_cast<std::size_t>(here)], x[0], {.value = value(0)}, x[1], {.value = value(1)});
}

/// Between the two axis positions around at[a], each estimated in its turn.
template <std::size_t D>
std::optional<Estimate> SparseGrid<D>::split(std::size_t a, const Key& at) const {
    const auto above = std::lower_bound(axes_[a].begin(), axes_[a].end(), at[a]) - axes_[a].begin();
    std::array<std::optional<Estimate>, 2> sides;
    std::array<double, 2> x{};
    for (const std::size_t s : {std::size_t{0}, std::size_t{1}}) {
        const auto p = step(a, s == 0 ? above : above - 1, s == 0 ? -1 : 1, at[a]);
        if (p == none) continue;
        Key moved = at;
        moved[a] = axes_[a][static_cast<std::size_t>(p)];
        sides[s] = estimate(moved);
        x[s] = logs_[a][static_cast<std::size_t>(p)];
    }
    if (!sides[0] && !sides[1]) return std::nullopt;
    if (sides[0] && sides[1]) return between(std::log(static_cast<double>(at[a])), x[0], *sides[0], x[1], *sides[1]);
    auto held = sides[0] ? *sides[0] : *sides[1];
    held.beyond = held.off_grid = true;
    held.exact_index = none;
    return held;
}

template <std::size_t D>
Estimate SparseGrid<D>::between(double x, double x0, const Estimate& y0, double x1, const Estimate& y1) {
    const double t = (x - x0) / (x1 - x0);
    return {.value = y0.value + t * (y1.value - y0.value), .beyond = y0.beyond || y1.beyond, .off_grid = true};
}

template <std::size_t D>
Estimate SparseGrid<D>::nearest(const Key& at) const {
    double best = std::numeric_limits<double>::infinity();
    std::size_t chosen = 0;
    for (std::size_t i = 0; i < values_.size(); ++i) {
        double distance = 0;
        for (std::size_t a = 0; a < D; ++a)
            distance += std::abs(std::log(static_cast<double>(values_[i].at[a]) / static_cast<double>(at[a])));
        if (distance < best || (distance == best && values_[i].at < values_[chosen].at)) {
            best = distance;
            chosen = i;
        }
    }
    return {.value = values_[chosen].value, .beyond = true, .off_grid = true};
}

}  // namespace pipeweaver::costdb
