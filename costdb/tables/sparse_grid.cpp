#include "costdb/tables/sparse_grid.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

namespace pipeweaver::costdb {

namespace {

// Chosen on left-out points of A100, H100 and H200 together.
constexpr float sharpest = 0.02F;    // misses below tell nothing: noise of the measurement
constexpr double weight_held = 0.5;  // of an axis with points on one side only
constexpr float unknown_miss = 0.1F;

/// Index of the first value that is not below x. Steps that do not depend on the values: a look-up's x is no more
/// foreseeable than a coin, and a wrong guess costs more than the step.
std::size_t first_not_below(const std::vector<std::int64_t>& sorted, std::int64_t x) {
    std::size_t first = 0;
    for (std::size_t left = sorted.size(); left > 0;) {
        const std::size_t half = (left + 1) / 2;
        first += half * static_cast<std::size_t>(sorted[first + half - 1] < x);
        left -= half;
    }
    return first;
}

/// The coordinates of points along axis `a`, each once, in order. Few of many points are new ones, so they are looked
/// for in what is sorted already, which doubles at the least before it is sorted again.
template <class Points>
std::vector<std::int64_t> coordinates(const Points& points, std::size_t a) {
    constexpr std::size_t few = 64;
    std::vector<std::int64_t> axis;
    std::size_t sorted = 0;
    const auto sort_all = [&] {
        std::sort(axis.begin(), axis.end());
        axis.erase(std::unique(axis.begin(), axis.end()), axis.end());
        sorted = axis.size();
    };
    for (const auto& point : points) {
        const std::int64_t x = point.at[a];
        if (std::binary_search(axis.begin(), axis.begin() + static_cast<std::ptrdiff_t>(sorted), x)) continue;
        axis.push_back(x);
        if (axis.size() >= 2 * sorted + few) sort_all();
    }
    sort_all();
    return axis;
}

}  // namespace

template <std::size_t D>
SparseGrid<D>::SparseGrid(const std::vector<Point>& points, Key bracket_order, ClassOf class_of)
    : bracket_order_(bracket_order), class_of_(class_of) {
    for (std::size_t a = 0; a < D; ++a) {
        axes_[a] = coordinates(points, a);
        for (const auto x : axes_[a]) {
            logs_[a].push_back(std::log(static_cast<double>(x)));
            classes_[a].push_back(static_cast<std::int8_t>(class_of(a, x)));
        }
    }
    place(points);
    measure_misses();
    fill_holes();
}

/// Puts the points on the grid: densely where a fair part of its cells has one, else as sorted lines.
template <std::size_t D>
void SparseGrid<D>::place(const std::vector<Point>& points) {
    double volume = 1;
    for (std::size_t a = D; a-- > 0;) {
        strides_[a] = volume < 1e15 ? static_cast<std::size_t>(volume) : 0;
        volume *= static_cast<double>(std::max<std::size_t>(axes_[a].size(), 1));
    }
    positions_.reserve(points.size());
    nodes_.reserve(points.size());
    for (const auto& point : points) {
        positions_.push_back(place_of(point.at).position);
        nodes_.push_back({point.value, {}});
    }
    if (volume > 16 * static_cast<double>(points.size()) + 1024) return sort_lines();
    dense_.assign(static_cast<std::size_t>(volume), none);
    for (std::size_t i = 0; i < points.size(); ++i) dense_[cell(positions_[i])] = static_cast<std::int32_t>(i);
}

template <std::size_t D>
void SparseGrid<D>::sort_lines() {
    for (std::size_t a = 0; a < D; ++a) {
        lines_[a].resize(nodes_.size());
        std::iota(lines_[a].begin(), lines_[a].end(), 0);
        std::sort(lines_[a].begin(), lines_[a].end(), [&](std::int32_t i, std::int32_t j) {
            return before(a, positions_[static_cast<std::size_t>(i)], positions_[static_cast<std::size_t>(j)]);
        });
    }
}

/// Order of the lines along `a`: by the other axes, then along the line.
template <std::size_t D>
bool SparseGrid<D>::before(std::size_t a, const Position& p, const Position& q) const {
    for (std::size_t b = 0; b < D; ++b)
        if (b != a && p[b] != q[b]) return p[b] < q[b];
    return p[a] < q[a];
}

template <std::size_t D>
void SparseGrid<D>::measure_misses() {
    for (std::size_t i = 0; i < nodes_.size(); ++i)
        for (std::size_t a = 0; a < D; ++a) {
            const auto part = along(a, positions_[i]);
            nodes_[i].misses[a] = part.empty() ? -1 : static_cast<float>(std::abs(part.value - nodes_[i].value));
        }
}

template <std::size_t D>
void SparseGrid<D>::fill_holes() {
    if (dense_.empty() || dense_.size() > 2 * nodes_.size()) return;
    Position position{};
    for (auto& content : dense_) {
        if (content == none)
            if (const auto found = hole(position)) {
                content = -2 - static_cast<std::int32_t>(holes_.size());
                holes_.push_back(*found);
            }
        for (std::size_t a = D; a-- > 0;) {
            if (++position[a] < static_cast<std::int32_t>(axes_[a].size())) break;
            position[a] = 0;
        }
    }
}

template <std::size_t D>
typename SparseGrid<D>::Place SparseGrid<D>::place_of(const Key& at) const {
    Place place{at, {}, {}};
    for (std::size_t a = 0; a < D; ++a) {
        const auto above = first_not_below(axes_[a], at[a]);
        const bool hit = above < axes_[a].size() && axes_[a][above] == at[a];
        place.above[a] = static_cast<std::int32_t>(above);
        place.position[a] = hit ? place.above[a] : none;
    }
    return place;
}

template <std::size_t D>
std::size_t SparseGrid<D>::cell(const Position& position) const {
    std::size_t result = 0;
    for (std::size_t a = 0; a < D; ++a) result += static_cast<std::size_t>(position[a]) * strides_[a];
    return result;
}

/// The point at `position`, or none.
template <std::size_t D>
std::int32_t SparseGrid<D>::find(const Position& position) const {
    if (!dense_.empty()) return std::max(dense_[cell(position)], none);
    const auto& line = lines_[0];
    const auto found = std::lower_bound(line.begin(), line.end(), position, [&](std::int32_t i, const Position& p) {
        return before(0, positions_[static_cast<std::size_t>(i)], p);
    });
    return found == line.end() || positions_[static_cast<std::size_t>(*found)] != position ? none : *found;
}

template <std::size_t D>
std::int64_t SparseGrid<D>::exact(const Place& place) const {
    for (const auto p : place.position)
        if (p == none) return none;
    return find(place.position);
}

/// The next point of the line through `position` along `a` that has its class, or none.
template <std::size_t D>
std::int32_t SparseGrid<D>::neighbour(std::size_t a, const Position& position, int direction) const {
    const auto& classes = classes_[a];
    const auto wanted = classes[static_cast<std::size_t>(position[a])];
    if (!dense_.empty()) {
        auto where = static_cast<std::int64_t>(cell(position));
        const auto stride = direction * static_cast<std::int64_t>(strides_[a]);
        const auto size = static_cast<std::int32_t>(classes.size());
        for (auto p = position[a] + direction; p >= 0 && p < size; p += direction) {
            where += stride;
            if (const auto point = dense_[static_cast<std::size_t>(where)];
                point >= 0 && classes[static_cast<std::size_t>(p)] == wanted)
                return point;
        }
        return none;
    }
    const auto& line = lines_[a];
    const auto first = std::lower_bound(line.begin(), line.end(), position, [&](std::int32_t i, const Position& p) {
        return before(a, positions_[static_cast<std::size_t>(i)], p);
    });
    for (auto i = first - line.begin() + std::min(direction, 0); i >= 0 && i < static_cast<std::ptrdiff_t>(line.size());
         i += direction) {
        const auto point = line[static_cast<std::size_t>(i)];
        auto other = positions_[static_cast<std::size_t>(point)];
        const auto p = std::exchange(other[a], position[a]);
        if (other != position) return none;
        if (p != position[a] && classes[static_cast<std::size_t>(p)] == wanted) return point;
    }
    return none;
}

/// The next axis position from `from` in `direction` that has the class of `coordinate`, or none.
template <std::size_t D>
std::int32_t SparseGrid<D>::step(std::size_t a, std::int32_t from, int direction, std::int64_t coordinate) const {
    const auto wanted = class_of_(a, coordinate);
    const auto size = static_cast<std::int32_t>(axes_[a].size());
    for (auto p = from + direction; p >= 0 && p < size; p += direction)
        if (classes_[a][static_cast<std::size_t>(p)] == wanted) return p;
    return none;
}

/// Between the next points on the line through `position` along axis `a`, without the point that lies there.
template <std::size_t D>
typename SparseGrid<D>::Along SparseGrid<D>::along(std::size_t a, const Position& position) const {
    Along result{.points = {neighbour(a, position, -1), neighbour(a, position, 1)}};
    if (result.empty()) return result;
    const auto value = [&](std::size_t s) { return nodes_[static_cast<std::size_t>(result.points[s])].value; };
    const auto x = [&](std::size_t s) {
        return logs_[a][static_cast<std::size_t>(positions_[static_cast<std::size_t>(result.points[s])][a])];
    };
    if (result.held()) {
        result.value = value(result.points[0] == none ? 1 : 0);
        return result;
    }
    const double t = (logs_[a][static_cast<std::size_t>(position[a])] - x(0)) / (x(1) - x(0));
    result.value = value(0) + t * (value(1) - value(0));
    return result;
}

/// The mean of the estimates along each axis.
template <std::size_t D>
std::optional<typename SparseGrid<D>::Found> SparseGrid<D>::hole(const Position& position) const {
    std::array<Along, D> parts;
    Misses sums{}, counts{};
    for (std::size_t a = 0; a < D; ++a) {
        parts[a] = along(a, position);
        for (const auto point : parts[a].points) {
            if (point == none) continue;
            const auto& misses = nodes_[static_cast<std::size_t>(point)].misses;
            for (std::size_t b = 0; b < D; ++b)
                if (misses[b] >= 0) {
                    sums[b] += misses[b];
                    ++counts[b];
                }
        }
    }
    Found found{.beyond = true};
    double weights = 0;
    double doubt = 0;
    for (std::size_t a = 0; a < D; ++a) {
        const float miss = found.misses[a] = counts[a] > 0 ? sums[a] / counts[a] : unknown_miss;
        if (parts[a].empty()) continue;
        const double sharpness = 1 / static_cast<double>(miss + sharpest);
        const double weight = sharpness * sharpness * sharpness * (parts[a].held() ? weight_held : 1);
        found.value += weight * parts[a].value;
        doubt += weight * static_cast<double>(miss);
        weights += weight;
        found.beyond = found.beyond && parts[a].held();
    }
    if (weights <= 0) return std::nullopt;
    found.value /= weights;
    found.doubt = static_cast<float>(doubt / weights);
    return found;
}

template <std::size_t D>
std::optional<typename SparseGrid<D>::Found> SparseGrid<D>::at_position(const Position& position) const {
    auto point = none;
    if (dense_.empty()) {
        point = find(position);
    } else {
        point = dense_[cell(position)];
        if (point < none) return holes_[static_cast<std::size_t>(-2 - point)];
    }
    if (point == none) return hole(position);
    const auto& node = nodes_[static_cast<std::size_t>(point)];
    return Found{.value = node.value, .misses = node.misses, .point = point};
}

template <std::size_t D>
std::optional<typename SparseGrid<D>::Found> SparseGrid<D>::find_at(const Place& place) const {
    for (const auto a : bracket_order_)
        if (place.position[static_cast<std::size_t>(a)] == none) return split(static_cast<std::size_t>(a), place);
    return at_position(place.position);
}

/// Between the two axis positions around the query's, each estimated in its turn.
template <std::size_t D>
std::optional<typename SparseGrid<D>::Found> SparseGrid<D>::split(std::size_t a, const Place& place) const {
    const auto coordinate = place.at[a];
    const auto above = place.above[a];
    auto side = place;
    std::array<std::optional<Found>, 2> sides;
    std::array<double, 2> x{};
    for (const std::size_t s : {std::size_t{0}, std::size_t{1}}) {
        const auto p = step(a, s == 0 ? above : above - 1, s == 0 ? -1 : 1, coordinate);
        if (p == none) continue;
        side.position[a] = p;
        sides[s] = find_at(side);
        x[s] = logs_[a][static_cast<std::size_t>(p)];
    }
    if (sides[0] && sides[1])
        return between(a, (std::log(static_cast<double>(coordinate)) - x[0]) / (x[1] - x[0]), *sides[0], *sides[1]);
    if (!sides[0] && !sides[1]) return std::nullopt;
    auto held = between(a, 0, sides[0] ? *sides[0] : *sides[1], sides[0] ? *sides[0] : *sides[1]);
    held.beyond = true;
    return held;
}

template <std::size_t D>
typename SparseGrid<D>::Found SparseGrid<D>::between(std::size_t a, double t, const Found& y0, const Found& y1) {
    Found found{.value = y0.value + t * (y1.value - y0.value), .beyond = y0.beyond || y1.beyond, .off_grid = true};
    for (std::size_t b = 0; b < D; ++b)
        found.misses[b] = y0.misses[b] < 0   ? y1.misses[b]
                          : y1.misses[b] < 0 ? y0.misses[b]
                                             : (y0.misses[b] + y1.misses[b]) / 2;
    const float miss = found.misses[a] < 0 ? unknown_miss : found.misses[a];
    const float ends = (y0.doubt + y1.doubt) / 2;
    found.doubt = std::sqrt(ends * ends + miss * miss);
    return found;
}

template <std::size_t D>
std::optional<Estimate> SparseGrid<D>::estimate_at(const Place& place) const {
    const auto found = find_at(place);
    if (!found) return std::nullopt;
    return Estimate{found->value, static_cast<double>(found->doubt), found->beyond, found->off_grid, found->point};
}

template <std::size_t D>
Estimate SparseGrid<D>::nearest(const Key& at) const {
    std::array<double, D> logs;
    for (std::size_t a = 0; a < D; ++a) logs[a] = std::log(static_cast<double>(at[a]));
    double best = std::numeric_limits<double>::infinity();
    std::size_t chosen = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
        double distance = 0;
        for (std::size_t a = 0; a < D; ++a)
            distance += std::abs(logs_[a][static_cast<std::size_t>(positions_[i][a])] - logs[a]);
        if (distance < best || (distance == best && positions_[i] < positions_[chosen])) {
            best = distance;
            chosen = i;
        }
    }
    return {.value = nodes_[chosen].value, .doubt = unknown_miss, .beyond = true, .off_grid = true};
}

template class SparseGrid<2>;
template class SparseGrid<3>;
template class SparseGrid<4>;
template class SparseGrid<5>;

}  // namespace pipeweaver::costdb
