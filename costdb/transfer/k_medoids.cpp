#include "costdb/transfer/k_medoids.hpp"

#include "pipeweaver/base/random.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace pipeweaver::costdb {

namespace {

constexpr std::size_t most_candidates = 1000;
constexpr double far = std::numeric_limits<double>::infinity();

/// Distances among the candidates, their weights, and the medoids found so far.
class Search {
public:
    Search(std::span<const Place> places, std::span<const double> weights, const std::vector<std::size_t>& candidates)
        : size_(candidates.size()), distances_(size_ * size_) {
        for (const auto c : candidates) weights_.push_back(weights[c]);
        for (std::size_t i = 0; i < size_; ++i)
            for (std::size_t j = 0; j < size_; ++j)
                distances_[i * size_ + j] = distance(places[candidates[i]], places[candidates[j]]);
    }

    /// Adds the candidate that lowers the sum most.
    void add_best() {
        double best = far;
        std::size_t chosen = 0;
        for (std::size_t j = 0; j < size_; ++j) {
            if (is_medoid(j)) continue;
            double sum = 0;
            for (std::size_t i = 0; i < size_; ++i)
                sum += weights_[i] * std::min(medoids_.empty() ? far : first_[i], between(i, j));
            if (sum < best) {
                best = sum;
                chosen = j;
            }
        }
        medoids_.push_back(chosen);
        find_nearest();
    }

    /// Makes the best swap of a medoid for another candidate; false if none lowers the sum.
    bool swap_best() {
        double best = -1e-9;
        std::size_t in = 0;
        std::size_t out = 0;
        for (std::size_t j = 0; j < size_; ++j) {
            if (is_medoid(j)) continue;
            const auto changes = changes_by(j);
            const auto least = std::min_element(changes.begin(), changes.end());
            if (*least >= best) continue;
            best = *least;
            in = j;
            out = static_cast<std::size_t>(least - changes.begin());
        }
        if (best >= -1e-9) return false;
        medoids_[out] = in;
        find_nearest();
        return true;
    }

    const std::vector<std::size_t>& medoids() const { return medoids_; }

private:
    double between(std::size_t i, std::size_t j) const { return distances_[i * size_ + j]; }
    bool is_medoid(std::size_t j) const { return std::find(medoids_.begin(), medoids_.end(), j) != medoids_.end(); }

    /// How the sum changes if candidate `j` takes the place of each medoid.
    std::vector<double> changes_by(std::size_t j) const {
        std::vector<double> changes(medoids_.size(), 0);
        double everywhere = 0;
        for (std::size_t i = 0; i < size_; ++i) {
            const double here = between(i, j);
            const double gain = weights_[i] * std::min(here - first_[i], 0.);
            everywhere += gain;
            changes[nearest_[i]] += weights_[i] * (std::min(here, second_[i]) - first_[i]) - gain;
        }
        for (auto& change : changes) change += everywhere;
        return changes;
    }

    void find_nearest() {
        first_.assign(size_, far);
        second_.assign(size_, far);
        nearest_.assign(size_, 0);
        for (std::size_t i = 0; i < size_; ++i)
            for (std::size_t c = 0; c < medoids_.size(); ++c) {
                const double here = between(i, medoids_[c]);
                if (here < first_[i]) {
                    second_[i] = first_[i];
                    first_[i] = here;
                    nearest_[i] = c;
                } else if (here < second_[i]) {
                    second_[i] = here;
                }
            }
    }

    std::size_t size_;
    std::vector<double> distances_, weights_;
    std::vector<std::size_t> medoids_;
    std::vector<double> first_, second_;  // distance to the nearest medoid and to the next
    std::vector<std::size_t> nearest_;
};

/// All of them, or some drawn by their number.
std::vector<std::size_t> candidates_of(std::size_t places, std::size_t k) {
    std::vector<std::size_t> all(places);
    std::iota(all.begin(), all.end(), std::size_t{0});
    const auto most = std::max(most_candidates, k);
    if (places <= most) return all;
    std::sort(all.begin(), all.end(), [](auto a, auto b) { return mix(a) < mix(b); });
    all.resize(most);
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace

Place place_of(std::int64_t m, std::int64_t n, std::int64_t k) {
    return {std::log(static_cast<double>(m)), std::log(static_cast<double>(n)), std::log(static_cast<double>(k))};
}

double distance(const Place& a, const Place& b) { return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]); }

double cost_of_medoids(std::span<const Place> places, std::span<const double> weights,
                       std::span<const std::size_t> medoids) {
    double sum = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        double nearest = far;
        for (const auto medoid : medoids) nearest = std::min(nearest, distance(places[i], places[medoid]));
        sum += weights[i] * nearest;
    }
    return sum;
}

std::vector<std::size_t> k_medoids(std::span<const Place> places, std::span<const double> weights, std::size_t k) {
    const auto candidates = candidates_of(places.size(), k);
    if (k == 0 || k == candidates.size())
        return {candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(k)};
    Search search(places, weights, candidates);
    for (std::size_t i = 0; i < k; ++i) search.add_best();
    constexpr int most_swaps = 1000;  // each lowers the sum, so this is reached by no input that is known
    for (int i = 0; i < most_swaps && search.swap_best(); ++i) continue;
    std::vector<std::size_t> chosen;
    for (const auto medoid : search.medoids()) chosen.push_back(candidates[medoid]);
    std::sort(chosen.begin(), chosen.end());
    return chosen;
}

}  // namespace pipeweaver::costdb
