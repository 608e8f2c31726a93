// A few places that stand for many: partitioning around medoids (Kaufman and Rousseeuw 1990, chapter 2), with the swap
// step of FastPAM1 (Schubert and Rousseeuw 2019, arXiv 1810.05691).
//
// Determinism  equal arguments give equal medoids; ties go to the lower index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pipeweaver::costdb {

using Place = std::array<double, 3>;

/// The logarithms of a shape's sizes.
[[nodiscard]] Place place_of(std::int64_t m, std::int64_t n, std::int64_t k);

/// Euclidean.
[[nodiscard]] double distance(const Place& a, const Place& b);

/// Sum of weight * distance to the nearest medoid.
[[nodiscard]] double cost_of_medoids(std::span<const Place> places, std::span<const double> weights,
                                     std::span<const std::size_t> medoids);

/// Indices of `k` places, ascending, such that the sum of weight * Euclidean distance to the nearest is small: greedy
/// build, then swaps until none helps. Of more than 1000 places, medoids are among 1000 drawn from them, by those.
/// Pre: weights above 0, as many as places; k <= places.
[[nodiscard]] std::vector<std::size_t> k_medoids(std::span<const Place> places, std::span<const double> weights,
                                                 std::size_t k);

}  // namespace pipeweaver::costdb
