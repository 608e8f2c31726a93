// A few shapes that stand for many.
#include "costdb/transfer/k_medoids.hpp"

#include "pipeweaver/base/random.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::costdb;

namespace {

std::vector<Place> random_places(std::uint64_t seed, std::size_t count) {
    Random random(seed);
    std::vector<Place> places(count);
    for (auto& place : places)
        for (auto& x : place) x = 10 * random.uniform();
    return places;
}

/// The least cost of any choice of two, by trying all.
double best_of_two(const std::vector<Place>& places, const std::vector<double>& weights) {
    double best = 1e300;
    for (std::size_t i = 0; i < places.size(); ++i)
        for (std::size_t j = i + 1; j < places.size(); ++j)
            best = std::min(best, cost_of_medoids(places, weights, std::vector{i, j}));
    return best;
}

}  // namespace

TEST_CASE("two clusters have their middles as medoids") {
    const std::vector<Place> places{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}, {50, 0, 0}, {51, 0, 0}, {52, 0, 0}};

    CHECK(k_medoids(places, std::vector<double>(6, 1.), 2) == std::vector<std::size_t>{1, 4});
}

TEST_CASE("a heavy place draws the medoid") {
    const std::vector<Place> places{{0, 0, 0}, {1, 0, 0}, {2, 0, 0}};

    CHECK(k_medoids(places, std::vector<double>{1, 1, 1}, 1) == std::vector<std::size_t>{1});
    CHECK(k_medoids(places, std::vector<double>{1, 1, 5}, 1) == std::vector<std::size_t>{2});
}

TEST_CASE("as many medoids as places are all places") {
    const auto places = random_places(1, 7);

    CHECK(k_medoids(places, std::vector<double>(7, 1.), 7) == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6});
    CHECK(k_medoids(places, std::vector<double>(7, 1.), 0).empty());
}

TEST_CASE("medoids are within a tenth of the best of all pairs, and mostly the best") {
    std::size_t best = 0;
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
        const auto places = random_places(seed, 25);
        std::vector<double> weights;
        Random random(seed, 1);
        for (std::size_t i = 0; i < places.size(); ++i) weights.push_back(0.1 + random.uniform());

        const auto cost = cost_of_medoids(places, weights, k_medoids(places, weights, 2));

        const auto least = best_of_two(places, weights);
        CHECK(cost <= 1.1 * least);
        if (cost <= least * (1 + 1e-12)) ++best;
    }
    CHECK(best >= 20);
}

TEST_CASE("of many places, medoids are different ones and far better than the first ones") {
    const auto places = random_places(3, 5000);
    const std::vector<double> weights(places.size(), 1.);

    const auto medoids = k_medoids(places, weights, 32);

    CHECK(medoids.size() == 32);
    CHECK(std::adjacent_find(medoids.begin(), medoids.end(), std::greater_equal<>()) == medoids.end());
    std::vector<std::size_t> first;
    for (std::size_t i = 0; i < 32; ++i) first.push_back(i);
    CHECK(cost_of_medoids(places, weights, medoids) < 0.85 * cost_of_medoids(places, weights, first));
}
