// Values on a grid with holes: found by position, and estimated between and beyond the points.
//
// The method (GEMM and attention share it), with coordinates in logarithms:
//   1. a query on a point                         -> its value
//   2. every coordinate on its axis, no point     -> mean of the 1-D interpolations along each axis through the query
//                                                    (the other coordinates fixed). An axis weighs 1 / (miss + 0.02)^3,
//                                                    where its miss is how far interpolation along it is off at the
//                                                    next points around the query; half of that where points lie on one
//                                                    side only and the value is held.
//   3. a coordinate off its axis                  -> linear between the two next axis positions, each found by 1-3;
//                                                    beyond the axis the last value is held
// The doubt of an estimate is the miss that it has to be reckoned with: of 2 the weighted mean of the misses, of 3 that
// along the axis and that of the ends. An axis may have classes: positions of another class than the query's are passed
// over.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace pipeweaver::costdb {

struct Estimate {
    double value = 0;
    double doubt = 0;               ///< how far values like this one are off, in the unit of the value
    bool beyond = false;            ///< a value was held beyond the points
    bool off_grid = false;          ///< a coordinate was on no axis position
    std::int64_t exact_index = -1;  ///< of the point hit, as given to the constructor
};

/// Made for 2, 3 and 5 dimensions.
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

    SparseGrid() = default;

    /// Pre: no two points at the same place, all coordinates >= 1. Time: points * log(points).
    /// `bracket_order`: axes by which off-grid queries are split, outermost first.
    SparseGrid(const std::vector<Point>& points, Key bracket_order, ClassOf class_of = one_class);

    bool empty() const { return nodes_.empty(); }
    const std::vector<std::int64_t>& axis(std::size_t a) const { return axes_[a]; }

    using Position = std::array<std::int32_t, D>;  ///< index on each axis, or -1
    struct Place {
        Key at{};
        Position position{};
        Position above{};  ///< the next position that is not below
    };
    Place place_of(const Key& at) const;

    /// Index of the point at `place`, or -1.
    std::int64_t exact(const Place& place) const;

    /// The estimate at `place`, or nothing where the points offer none (then see nearest()).
    std::optional<Estimate> estimate_at(const Place& place) const;
    std::optional<Estimate> estimate(const Key& at) const { return estimate_at(place_of(at)); }

    /// Value of the point that is nearest in logarithms; ties by position. Pre: !empty(). Linear in the points.
    Estimate nearest(const Key& at) const;

private:
    static constexpr std::int32_t none = -1;
    using Misses = std::array<float, D>;  // along each axis; below 0: unknown

    struct Node {
        double value = 0;
        Misses misses{};
    };

    struct Found {
        double value = 0;
        float doubt = 0;
        Misses misses{};
        bool beyond = false, off_grid = false;
        std::int32_t point = none;
    };
    struct Along {
        double value = 0;
        std::array<std::int32_t, 2> points{none, none};
        bool held() const { return points[0] == none || points[1] == none; }
        bool empty() const { return points[0] == none && points[1] == none; }
    };

    void place(const std::vector<Point>& points);
    void sort_lines();
    void measure_misses();
    void fill_holes();

    std::size_t cell(const Position& position) const;
    bool before(std::size_t a, const Position& p, const Position& q) const;
    std::int32_t find(const Position& position) const;
    std::int32_t neighbour(std::size_t a, const Position& position, int direction) const;
    std::int32_t step(std::size_t a, std::int32_t from, int direction, std::int64_t coordinate) const;
    Along along(std::size_t a, const Position& position) const;
    std::optional<Found> at_position(const Position& position) const;
    std::optional<Found> hole(const Position& position) const;
    std::optional<Found> find_at(const Place& place) const;
    std::optional<Found> split(std::size_t a, const Place& place) const;
    static Found between(std::size_t a, double t, const Found& y0, const Found& y1);

    std::array<std::vector<std::int64_t>, D> axes_;
    std::array<std::vector<double>, D> logs_;
    std::array<std::vector<std::int8_t>, D> classes_;
    std::array<std::size_t, D> strides_{};
    std::vector<Position> positions_;  // of the points ...
    std::vector<Node> nodes_;          // ... and what is known of them
    std::vector<std::int32_t>
        dense_;                 // on a full enough grid: the point of every cell, none, or -2 - index of its hole
    std::vector<Found> holes_;  // estimates of the holes of a nearly full grid
    std::array<std::vector<std::int32_t>, D> lines_;  // else the points, sorted so that those of a line are together
    Key bracket_order_{};
    ClassOf class_of_ = one_class;
};

extern template class SparseGrid<2>;
extern template class SparseGrid<3>;
extern template class SparseGrid<4>;
extern template class SparseGrid<5>;

}  // namespace pipeweaver::costdb
