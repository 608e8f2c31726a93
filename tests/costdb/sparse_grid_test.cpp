#include "costdb/tables/sparse_grid.hpp"

#include "pipeweaver/base/random.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::costdb;

namespace {

using Grid = SparseGrid<2>;
constexpr Grid::Key second_then_first{1, 0};

// x: 1, 4, 16 (equal steps in the logarithm), y: 1, 2, 4; value 10 lx + ly with lx = 0..2, ly = 0..2; (4, 2) is a hole.
Grid with_hole() {
    std::vector<Grid::Point> points;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            if (i != 1 || j != 1) points.push_back({{std::int64_t{1} << (2 * i), std::int64_t{1} << j}, 10. * i + j});
    return {points, second_then_first};
}

int parity(std::size_t axis, std::int64_t x) { return axis == 0 ? static_cast<int>(x % 2) : 0; }

}  // namespace

TEST_CASE("a point of the grid gives its own value, and says which it was") {
    const auto found = with_hole().estimate({16, 2});

    REQUIRE(found);
    CHECK(found->value == 21);
    CHECK(found->exact_index == 6);
    CHECK_FALSE(found->beyond);
}

TEST_CASE("axes hold each coordinate once and in order, whatever the order of the points") {
    constexpr std::int64_t wide = 300, high = 3, step = 77;  // 77 and 300 have no common divisor
    std::vector<Grid::Point> points;
    for (std::int64_t i = 0; i < wide * high; ++i)
        points.push_back({{i * step % wide + 1, i / wide + 1}, static_cast<double>(i)});
    const Grid grid(points, second_then_first);
    REQUIRE(grid.axis(0).size() == wide);
    for (std::size_t i = 0; i < wide; ++i) CHECK(grid.axis(0)[i] == static_cast<std::int64_t>(i) + 1);
    CHECK(grid.axis(1) == std::vector<std::int64_t>{1, 2, 3});
    for (const auto& point : points) CHECK(grid.estimate(point.at)->value == point.value);
}

TEST_CASE("a hole gets the mean of the interpolations along each axis") {
    const auto found = with_hole().estimate({4, 2});

    REQUIRE(found);
    CHECK(found->value == doctest::Approx(((1. + 21.) / 2 + (10. + 12.) / 2) / 2));
    CHECK(found->exact_index == -1);
    CHECK_FALSE(found->off_grid);
}

TEST_CASE("an axis along which interpolation misses the points around weighs less") {
    // Along x every second value is 0.3 higher, along y nothing changes; the middle is a hole.
    std::vector<Grid::Point> points;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            if (i != 1 || j != 1)
                points.push_back({{std::int64_t{1} << (2 * i), std::int64_t{1} << j}, i == 1 ? 0.3 : 0.});
    const Grid grid(points, second_then_first);

    const auto found = grid.estimate({4, 2});

    // Next to the hole, x misses (1,2) and (16,2) by 0 and (4,1) and (4,4) by 0.3: 0.15 in the mean; y misses by 0.
    REQUIRE(found);
    const double x = std::pow(0.15 + 0.02, -3);
    const double y = std::pow(0.02, -3);
    CHECK(found->value == doctest::Approx(0.3 * y / (x + y)));
    CHECK(found->doubt == doctest::Approx(0.15 * x / (x + y)));
}

TEST_CASE("an axis with points on one side only weighs half") {
    // Along x between 1 (value 0) and 16 (value 0.2), which miss each other by 0.2; along y only above, value 1, of
    // which nothing is known: 0.1.
    const Grid grid({{{1, 1}, 0}, {{16, 1}, 0.2}, {{4, 2}, 1}}, second_then_first);

    const auto found = grid.estimate({4, 1});

    REQUIRE(found);
    const double x = std::pow(0.2 + 0.02, -3);
    const double y = 0.5 * std::pow(0.1 + 0.02, -3);
    CHECK(found->value == doctest::Approx((0.1 * x + 1 * y) / (x + y)));
    CHECK_FALSE(found->beyond);
}

TEST_CASE("a grid too thin for a table of its cells answers as a full one does") {
    // The same plane with a bump, once dense, once with far points that blow up the number of cells.
    std::vector<SparseGrid<3>::Point> points;
    Random random(5);
    for (const std::int64_t x : {1, 2, 4, 8})
        for (const std::int64_t y : {1, 2, 4, 8})
            for (const std::int64_t z : {1, 2, 4, 8})
                if (random.below(5) > 0) points.push_back({{x, y, z}, 0.01 * static_cast<double>(random.below(100))});
    const SparseGrid<3> dense(points, {1, 2, 0});
    for (std::int64_t i = 1; i <= 100; ++i) points.push_back({{1000 + i, 1000 + i, 1000 + i}, 7});
    const SparseGrid<3> thin(points, {1, 2, 0});

    std::size_t holes = 0;
    for (const std::int64_t x : {1, 2, 4, 8})
        for (const std::int64_t y : {2, 3, 4})
            for (const std::int64_t z : {2, 4}) {
                const auto a = dense.estimate({x, y, z});
                const auto b = thin.estimate({x, y, z});
                REQUIRE(a);
                REQUIRE(b);
                CHECK(a->value == b->value);
                CHECK(a->doubt == b->doubt);
                CHECK(a->exact_index == b->exact_index);
                holes += a->exact_index < 0 ? 1 : 0;
            }
    CHECK(holes > 10);
}

TEST_CASE("between the lines values are bilinear in logarithms, beyond them held") {
    const auto grid = with_hole();
    const auto between = grid.estimate({8, 3});
    const auto beyond = grid.estimate({64, 1});

    REQUIRE(between);
    const double lx = 1.5;
    const double ly = std::log2(3.);
    // At (4, 2) the hole's own estimate is the plane's value.
    CHECK(between->value == doctest::Approx(10 * lx + ly));
    CHECK(between->off_grid);
    REQUIRE(beyond);
    CHECK(beyond->value == 20);
    CHECK(beyond->beyond);
}

TEST_CASE("positions of another class are passed over") {
    // Odd x carry 100 more; 2 and 8 are the even ones around 4.
    const Grid grid({{{2, 1}, 1}, {{3, 1}, 103}, {{5, 1}, 105}, {{8, 1}, 3}}, second_then_first, parity);

    CHECK(grid.estimate({4, 1})->value == doctest::Approx(2));
    CHECK(grid.estimate({9, 1})->value == 105);
    CHECK(grid.estimate({9, 1})->beyond);
}

TEST_CASE("a plane in logarithms is met everywhere inside, whatever holes there are") {
    // Linear functions are kept by every step of the method: a model that needs no second implementation.
    Random random(3);
    std::vector<SparseGrid<3>::Point> points;
    const auto plane = [](const SparseGrid<3>::Key& at) {
        return 2 * std::log(static_cast<double>(at[0])) - std::log(static_cast<double>(at[1])) +
               0.5 * std::log(static_cast<double>(at[2]));
    };
    for (const std::int64_t x : {1, 3, 8, 20, 50})
        for (const std::int64_t y : {1, 2, 9, 30})
            for (const std::int64_t z : {1, 7, 11, 64}) {
                const bool corner = (x == 1 || x == 50) || (y == 1 || y == 30) || (z == 1 || z == 64);
                if (corner || random.below(3) > 0) points.push_back({{x, y, z}, plane({x, y, z})});
            }
    const SparseGrid<3> grid(points, {1, 2, 0});
    for (int i = 0; i < 500; ++i) {
        const SparseGrid<3>::Key at{1 + static_cast<std::int64_t>(random.below(50)),
                                    1 + static_cast<std::int64_t>(random.below(30)),
                                    1 + static_cast<std::int64_t>(random.below(64))};
        const auto found = grid.estimate(at);
        REQUIRE(found);
        CHECK_FALSE(found->beyond);
        CHECK(found->value == doctest::Approx(plane(at)));
    }
}

TEST_CASE("a few scattered points answer as well, and offer the nearest where no line passes") {
    const SparseGrid<3> grid({{{1, 1000, 1}, 5}, {{1'000'000, 1, 7}, 6}, {{3, 3, 100'000}, 7}}, {1, 2, 0});

    CHECK(grid.estimate({1'000'000, 1, 7})->value == 6);
    CHECK(grid.nearest({4, 4, 90'000}).value == 7);
    CHECK(grid.nearest({4, 4, 90'000}).beyond);
}
