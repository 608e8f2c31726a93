#include "costdb/transfer/correction.hpp"

#include <cmath>
#include <numeric>

namespace pipeweaver::costdb {

namespace {

constexpr double ridge = 0.1;           // of a coefficient, per value
constexpr double covariance_reach = 2;  // of the covariance, in log-shape space
constexpr double noise = 1;             // of a value, in units of the signal's variance

/// Near 0 for the shapes of training.
std::array<double, 5> features_of(const Place& p) {
    const double harmonic = -std::log(std::exp(-p[0]) + std::exp(-p[1]) + std::exp(-p[2]));
    return {1, p[0] - 8, p[1] - 8.5, p[2] - 8.5, harmonic - 7};
}

double covariance(const Place& a, const Place& b) { return std::exp(-distance(a, b) / covariance_reach); }

/// x of a x = b, by Cholesky's method. Pre: `a` symmetric and positive definite, row by row.
std::vector<double> solve(std::vector<double> a, std::vector<double> b) {
    const auto n = b.size();
    for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = j; i < n; ++i) {
            double sum = a[i * n + j];
            for (std::size_t c = 0; c < j; ++c) sum -= a[i * n + c] * a[j * n + c];
            a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
        }
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t c = 0; c < i; ++c) b[i] -= a[i * n + c] * b[c];
        b[i] /= a[i * n + i];
    }
    for (std::size_t i = n; i-- > 0;) {
        for (std::size_t c = i + 1; c < n; ++c) b[i] -= a[c * n + i] * b[c];
        b[i] /= a[i * n + i];
    }
    return b;
}

}  // namespace

Correction::Correction(std::vector<Place> places, std::span<const double> values) : places_(std::move(places)) {
    const auto n = places_.size();
    std::vector<double> normal(features * features, 0), right(features, 0);
    for (std::size_t i = 0; i < n; ++i) {
        const auto x = features_of(places_[i]);
        for (std::size_t r = 0; r < features; ++r) {
            right[r] += x[r] * values[i];
            for (std::size_t c = 0; c < features; ++c) normal[r * features + c] += x[r] * x[c];
        }
    }
    for (std::size_t r = 1; r < features; ++r) normal[r * features + r] += ridge * static_cast<double>(n);
    const auto coefficients = solve(normal, right);
    std::copy(coefficients.begin(), coefficients.end(), trend_.begin());

    std::vector<double> covariances(n * n), rest(n);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) covariances[i * n + j] = covariance(places_[i], places_[j]);
        covariances[i * n + i] += noise;
        const auto x = features_of(places_[i]);
        rest[i] = values[i] - std::inner_product(x.begin(), x.end(), trend_.begin(), 0.);
    }
    weights_ = solve(covariances, rest);
}

double Correction::at(const Place& place) const {
    const auto x = features_of(place);
    double value = std::inner_product(x.begin(), x.end(), trend_.begin(), 0.);
    for (std::size_t i = 0; i < places_.size(); ++i) value += weights_[i] * covariance(place, places_[i]);
    return value;
}

std::vector<double> left_one_out(std::span<const Place> places, std::span<const double> values) {
    std::vector<double> said;
    for (std::size_t out = 0; out < places.size(); ++out) {
        std::vector<Place> others;
        std::vector<double> theirs;
        for (std::size_t i = 0; i < places.size(); ++i) {
            if (i == out) continue;
            others.push_back(places[i]);
            theirs.push_back(values[i]);
        }
        said.push_back(Correction(std::move(others), theirs).at(places[out]));
    }
    return said;
}

}  // namespace pipeweaver::costdb
