// A smooth function of a GEMM's shape through a few measured values: a linear trend and, upon what that leaves, kriging
// (Rasmussen and Williams 2006, sections 2.2 and 2.7).
//
// Method       the trend is ridge regression on ln m, ln n, ln k and ln of their harmonic sum, which is what a product
//              computes per byte it moves (penalty 0.1 per value); the rest is a Gaussian process with covariance
//              exp(-distance / 2) in log-shape space and as much noise as signal. Chosen among some ninety settings by
//              what transfers A100 -> H100, A100 -> H200, H100 -> H200 and H100 -> B200 with 32 points left out; the
//              better half of them differ by 0.3 % in the median.
#pragma once

#include "costdb/transfer/k_medoids.hpp"

#include <array>
#include <span>
#include <vector>

namespace pipeweaver::costdb {

class Correction {
public:
    /// Pre: at least one value; as many places as values.
    Correction(std::vector<Place> places, std::span<const double> values);

    /// The value at a place (ln m, ln n, ln k).
    double at(const Place& place) const;

private:
    static constexpr std::size_t features = 5;
    std::array<double, features> trend_{};
    std::vector<Place> places_;
    std::vector<double> weights_;  // of the covariances with the places
};

/// What the others say of each place: a fit without it, asked for it. Pre: at least two.
[[nodiscard]] std::vector<double> left_one_out(std::span<const Place> places, std::span<const double> values);

}  // namespace pipeweaver::costdb
