#include "workloads/packing/balanced.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <tuple>

namespace pipeweaver::workloads {

namespace {

constexpr std::size_t most_all_pairs = 64;       // bins of which any two are looked at
constexpr std::size_t partners = 8;              // of more: either side of the one at the same place from the end
constexpr std::size_t most_of_bin = 256;         // samples of a bin that are looked at, the last that it took
constexpr std::int64_t most_looks = 20'000'000;  // exchanges that are looked at
// What an exchange must gain, in squares of the mean bin: in as many bins as above, and in more.
constexpr double gain_of_few = 1e-6, gain_of_many = 1e-4;

// Moves and exchanges samples between two bins at a time while the squares of what bins differ from the mean, added up
// over bins and kinds of work, become less. Two bins have together what they had, so their squares are least where they
// differ least.
class Evening {
public:
    // Takes its looks from `looks`.
    Evening(Bins bins, const std::vector<Load>& loads, const Load& limit, const Works& works, std::int64_t& looks)
        : bins_(std::move(bins)),
          loads_(loads),
          limit_(limit),
          works_(works),
          filled_(bins_.size()),
          sums_(bins_.size() * works.kinds),
          half_(works.kinds),
          without_(works.kinds),
          looks_(looks),
          gain_(bins_.size() <= most_all_pairs ? gain_of_few : gain_of_many) {
        for (std::size_t b = 0; b < bins_.size(); ++b)
            for (const std::size_t sample : bins_[b]) put(b, sample);
    }

    void run() {
        while (looks_ > 0 && (bins_.size() <= most_all_pairs ? try_all_pairs() : try_opposites())) {
        }
    }

    // The squares. Pre: a bin's mean is 1 in each kind.
    double left() const {
        double squares = 0;
        for (const double sum : sums_) squares += (sum - 1) * (sum - 1);
        return squares;
    }

    Bins take() { return std::move(bins_); }

private:
    // What goes from the one bin to the other, and what comes back: places, or the bin's size for nothing.
    struct Exchange {
        std::size_t given = 0, taken = 0;
        double left = 0;  // squares of half of what the bins then differ
    };

    bool try_all_pairs() {
        bool better = false;
        for (std::size_t a = 0; a < bins_.size(); ++a)
            for (std::size_t b = a + 1; b < bins_.size() && looks_ > 0; ++b) better = exchange(a, b) || better;
        return better;
    }

    // The fullest with the emptiest, kind by kind.
    bool try_opposites() {
        bool better = false;
        const std::size_t count = bins_.size();
        std::vector<std::size_t> order(count);
        for (std::size_t k = 0; k < works_.kinds && looks_ > 0; ++k) {
            std::iota(order.begin(), order.end(), std::size_t{0});
            std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
                return std::tuple(sum(a, k), a) < std::tuple(sum(b, k), b);
            });
            for (std::size_t r = 0; r < count && looks_ > 0; ++r) {
                const std::size_t opposite = count - 1 - r;
                const std::size_t first = std::max(opposite - std::min(opposite, partners), r + 1);
                for (std::size_t o = first; o <= std::min(opposite + partners, count - 1); ++o)
                    better = exchange(order[r], order[o]) || better;
            }
        }
        return better;
    }

    // The best one of the two bins, where one makes them more even.
    bool exchange(std::size_t a, std::size_t b) {
        const Exchange best = best_exchange(a, b);
        auto &mine = bins_[a], &other = bins_[b];
        const bool gives = best.given < mine.size(), takes = best.taken < other.size();
        if (!gives && !takes) return false;
        if (gives) move(a, b, mine[best.given]);
        if (takes) move(b, a, other[best.taken]);
        if (gives && takes)
            std::swap(mine[best.given], other[best.taken]);
        else if (gives)
            carry(mine, best.given, other);
        else
            carry(other, best.taken, mine);
        return true;
    }

    Exchange best_exchange(std::size_t a, std::size_t b) {
        const auto &mine = bins_[a], &other = bins_[b];
        Exchange best{mine.size(), other.size(), 0};
        for (std::size_t k = 0; k < works_.kinds; ++k) {
            half_[k] = (sum(a, k) - sum(b, k)) / 2;
            best.left += half_[k] * half_[k];
        }
        best.left -= gain_;
        if (best.left <= 0) return best;
        const std::size_t first = first_of(mine), first_of_other = first_of(other);
        looks_ -= static_cast<std::int64_t>((mine.size() - first + 1) * (other.size() - first_of_other + 1));
        for (std::size_t given = first; given <= mine.size(); ++given) {
            for (std::size_t k = 0; k < works_.kinds; ++k)
                without_[k] = half_[k] - (given < mine.size() ? work(mine[given], k) : 0);
            for (std::size_t taken = first_of_other; taken <= other.size(); ++taken) {
                const double left =
                    squares_with(taken < other.size() ? &works_.of[other[taken] * works_.kinds] : nullptr);
                if (left < best.left && fits_after(a, b, given, taken)) best = {given, taken, left};
            }
        }
        return best;
    }

    static std::size_t first_of(const std::vector<std::size_t>& bin) {
        return bin.size() - std::min(bin.size(), most_of_bin);
    }

    double squares_with(const double* taken) const {
        double squares = 0;
        for (std::size_t k = 0; k < works_.kinds; ++k) {
            const double left = without_[k] + (taken != nullptr ? taken[k] : 0);
            squares += left * left;
        }
        return squares;
    }

    bool fits_after(std::size_t a, std::size_t b, std::size_t given, std::size_t taken) const {
        const Load from_a = given < bins_[a].size() ? loads_[bins_[a][given]] : Load{};
        const Load from_b = taken < bins_[b].size() ? loads_[bins_[b][taken]] : Load{};
        return fits(filled_[a] - from_a + from_b, limit_) && fits(filled_[b] - from_b + from_a, limit_);
    }

    void move(std::size_t from, std::size_t to, std::size_t sample) {
        filled_[from] = filled_[from] - loads_[sample];
        for (std::size_t k = 0; k < works_.kinds; ++k) sums_[from * works_.kinds + k] -= work(sample, k);
        put(to, sample);
    }

    void put(std::size_t bin, std::size_t sample) {
        filled_[bin] = filled_[bin] + loads_[sample];
        for (std::size_t k = 0; k < works_.kinds; ++k) sums_[bin * works_.kinds + k] += work(sample, k);
    }

    static void carry(std::vector<std::size_t>& from, std::size_t place, std::vector<std::size_t>& to) {
        to.push_back(from[place]);
        from.erase(from.begin() + static_cast<std::ptrdiff_t>(place));
    }

    double work(std::size_t sample, std::size_t k) const { return works_.of[sample * works_.kinds + k]; }
    double sum(std::size_t bin, std::size_t k) const { return sums_[bin * works_.kinds + k]; }

    Bins bins_;
    const std::vector<Load>& loads_;
    const Load& limit_;
    const Works& works_;
    std::vector<Load> filled_;
    std::vector<double> sums_;            // of each bin, by kind
    std::vector<double> half_, without_;  // of what two bins differ, by kind; less what is given
    std::int64_t& looks_;
    double gain_;  // the least that an exchange must gain
};

// The least at both ends, growing to the middle; ties by number.
Bins least_at_the_ends(Bins bins, const std::vector<double>& of) {
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t b = 0; b < bins.size(); ++b) {
        double sum = 0;
        for (const std::size_t sample : bins[b]) sum += of[sample];
        order.emplace_back(sum, b);
    }
    std::sort(order.begin(), order.end());
    Bins all(bins.size());
    std::size_t left = 0, right = bins.size();
    for (std::size_t n = 0; n < order.size(); ++n)
        all[n % 2 == 0 ? left++ : --right] = std::move(bins[order[n].second]);
    return all;
}

}  // namespace

Bins bins_balanced(const std::vector<Load>& loads, const Load& limit, Works works, const std::vector<double>& passing,
                   std::size_t count, Bins otherwise) {
    normalise(works, count);
    std::vector<Bins> starts;
    for (const Even even : {Even::largest, Even::squares})
        if (auto spread = bins_spread(loads, limit, works, count, even)) starts.push_back(std::move(*spread));
    if (starts.empty()) {
        otherwise.resize(std::max(otherwise.size(), count));
        starts.push_back(std::move(otherwise));
    }
    Bins bins;
    double least = 0;
    std::int64_t looks = most_looks;
    for (Bins& start : starts) {
        Evening evening(std::move(start), loads, limit, works, looks);
        evening.run();
        if (!bins.empty() && evening.left() >= least) continue;
        least = evening.left();
        bins = evening.take();
    }
    bins.erase(std::remove_if(bins.begin(), bins.end(), [](const auto& bin) { return bin.empty(); }), bins.end());
    for (auto& bin : bins) std::sort(bin.begin(), bin.end());
    return least_at_the_ends(std::move(bins), passing);
}

}  // namespace pipeweaver::workloads
