#include "workloads/packing/bins.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace pipeweaver::workloads {

namespace {

constexpr std::size_t most_tried = 32;  // least loaded bins that a sample is tried in

std::int64_t microseconds(double seconds) { return std::llround(seconds * 1e6); }

Bins in_sample_order(Bins bins) {
    for (auto& bin : bins) std::sort(bin.begin(), bin.end());
    return bins;
}

// A tournament over bins: of each subtree the most that one of its bins can still take, limit by limit.
class OpenBins {
public:
    OpenBins(std::size_t count, const Load& limit) : leaves_(std::bit_ceil(std::max<std::size_t>(count, 1))) {
        room_.assign(2 * leaves_, {-1, -1, -1});  // beyond the last bin
        for (std::size_t bin = 0; bin < count; ++bin) room_[leaves_ + bin] = limit;
        for (std::size_t node = leaves_; node-- > 1;) join(node);
    }

    // The first bin that takes it, if there is one.
    std::optional<std::size_t> first(const Load& load) const { return find(1, load); }

    void put(std::size_t bin, const Load& load) {
        std::size_t node = leaves_ + bin;
        room_[node] = room_[node] - load;
        while (node > 1) join(node /= 2);
    }

private:
    void join(std::size_t node) {
        const Load &a = room_[2 * node], &b = room_[2 * node + 1];
        room_[node] = {std::max(a.tokens, b.tokens), std::max(a.items, b.items), std::max(a.video_us, b.video_us)};
    }

    std::optional<std::size_t> find(std::size_t node, const Load& load) const {
        if (!fits(load, room_[node])) return std::nullopt;
        if (node >= leaves_) return node - leaves_;
        if (const auto left = find(2 * node, load)) return left;
        return find(2 * node + 1, load);
    }

    std::size_t leaves_;
    std::vector<Load> room_;
};

// Bins that are filled evenly in several sums at once.
class EvenBins {
public:
    EvenBins(const Works& works, const Load& limit, std::size_t count, Even even)
        : works_(works),
          limit_(limit),
          even_(even),
          room_(count, limit),
          bins_(count),
          filled_(count),
          sums_(count * works.kinds),
          open_(even == Even::largest ? 1 : works.kinds) {
        for (auto& open : open_)
            for (std::size_t b = 0; b < count; ++b) open.emplace(0.0, b);
    }

    // False: no bin takes it.
    bool put(std::size_t sample, const Load& load) {
        const auto bin = best_of_least_loaded(sample, load);
        const auto taken = bin ? bin : room_.first(load);
        if (!taken) return false;
        add(*taken, sample, load);
        return true;
    }

    Bins take() { return std::move(bins_); }

private:
    std::optional<std::size_t> best_of_least_loaded(std::size_t sample, const Load& load) const {
        const auto& open = open_[even_ == Even::largest ? 0 : largest_kind(sample)];
        std::optional<std::size_t> best;
        double least = 0;
        std::size_t tried = 0;
        for (auto one = open.begin(); one != open.end() && tried < most_tried; ++one, ++tried) {
            const std::size_t bin = one->second;
            if (!fits(filled_[bin] + load, limit_)) continue;
            const double after = even_ == Even::largest ? largest_with(bin, sample) : growth(bin, sample);
            if (best && after >= least) continue;
            best = bin;
            least = after;
        }
        return best;
    }

    void add(std::size_t bin, std::size_t sample, const Load& load) {
        for (std::size_t o = 0; o < open_.size(); ++o) open_[o].erase({key(o, bin), bin});
        room_.put(bin, load);
        bins_[bin].push_back(sample);
        filled_[bin] = filled_[bin] + load;
        for (std::size_t k = 0; k < works_.kinds; ++k) sums_[bin * works_.kinds + k] += work(sample, k);
        for (std::size_t o = 0; o < open_.size(); ++o) open_[o].emplace(key(o, bin), bin);
    }

    double key(std::size_t open, std::size_t bin) const {
        const auto first = sums_.begin() + static_cast<std::ptrdiff_t>(bin * works_.kinds);
        if (even_ == Even::squares) return first[static_cast<std::ptrdiff_t>(open)];
        return *std::max_element(first, first + static_cast<std::ptrdiff_t>(works_.kinds));
    }

    std::size_t largest_kind(std::size_t sample) const {
        std::size_t largest = 0;
        for (std::size_t k = 1; k < works_.kinds; ++k)
            if (work(sample, k) > work(sample, largest)) largest = k;
        return largest;
    }

    double largest_with(std::size_t bin, std::size_t sample) const {
        double largest = 0;
        for (std::size_t k = 0; k < works_.kinds; ++k)
            largest = std::max(largest, sums_[bin * works_.kinds + k] + work(sample, k));
        return largest;
    }

    // Half of what the squares of its sums grow by, less what is the same in every bin.
    double growth(std::size_t bin, std::size_t sample) const {
        double growth = 0;
        for (std::size_t k = 0; k < works_.kinds; ++k) growth += sums_[bin * works_.kinds + k] * work(sample, k);
        return growth;
    }

    double work(std::size_t sample, std::size_t k) const { return works_.of[sample * works_.kinds + k]; }

    const Works& works_;
    const Load& limit_;
    Even even_;
    OpenBins room_;
    Bins bins_;
    std::vector<Load> filled_;
    std::vector<double> sums_;                                    // of each bin, by kind
    std::vector<std::set<std::pair<double, std::size_t>>> open_;  // by their largest sum; or by each of them
};

// Samples of a bin that stay together.
struct Part {
    std::int64_t tokens = 0;
    std::size_t bin = 0, first = 0, end = 0;
};

// Bins of which the fullest are parted.
class Parting {
public:
    Parting(const Bins& bins, const std::vector<Load>& loads) : bins_(bins), loads_(loads) {
        for (std::size_t b = 0; b < bins.size(); ++b) add({tokens_of(b, 0, bins[b].size()), b, 0, bins[b].size()});
    }

    Bins run(std::size_t count) {
        while (parts_.size() + open_.size() < count) {
            if (open_.empty()) return bins_;
            const Part whole = open_.top();
            open_.pop();
            const auto [first, second] = halves(whole);
            add(first);
            add(second);
        }
        for (; !open_.empty(); open_.pop()) parts_.push_back(open_.top());
        std::sort(parts_.begin(), parts_.end(),
                  [](const Part& a, const Part& b) { return std::tie(a.bin, a.first) < std::tie(b.bin, b.first); });
        Bins all;
        all.reserve(parts_.size());
        for (const Part& part : parts_) all.emplace_back(at(part.bin, part.first), at(part.bin, part.end));
        return all;
    }

private:
    // The most tokens first, of equal ones the earlier.
    struct IsLess {
        bool operator()(const Part& a, const Part& b) const {
            return std::tie(a.tokens, b.bin, b.first) < std::tie(b.tokens, a.bin, a.first);
        }
    };

    Bins::value_type::const_iterator at(std::size_t bin, std::size_t place) const {
        return bins_[bin].begin() + static_cast<std::ptrdiff_t>(place);
    }

    std::int64_t tokens_of(std::size_t bin, std::size_t first, std::size_t end) const {
        return std::accumulate(at(bin, first), at(bin, end), std::int64_t{0},
                               [&](std::int64_t sum, std::size_t sample) { return sum + loads_[sample].tokens; });
    }

    void add(const Part& part) {
        if (part.end - part.first > 1)
            open_.push(part);
        else
            parts_.push_back(part);
    }

    std::pair<Part, Part> halves(const Part& whole) const {
        std::size_t cut = whole.first + 1;
        std::int64_t before = tokens_of(whole.bin, whole.first, cut);
        while (cut + 1 < whole.end) {
            const std::int64_t next = loads_[bins_[whole.bin][cut]].tokens;
            if (std::abs(whole.tokens - 2 * (before + next)) >= std::abs(whole.tokens - 2 * before)) break;
            before += next;
            ++cut;
        }
        return {{before, whole.bin, whole.first, cut}, {whole.tokens - before, whole.bin, cut, whole.end}};
    }

    const Bins& bins_;
    const std::vector<Load>& loads_;
    std::priority_queue<Part, std::vector<Part>, IsLess> open_;  // of several samples
    std::vector<Part> parts_;                                    // that stay as they are
};

}  // namespace

Load load_of(const Sample& sample) {
    Load load{sample.tokens(), static_cast<std::int64_t>(sample.items.size()), 0};
    for (const auto& item : sample.items)
        if (item.modality == Modality::video) load.video_us += microseconds(item.seconds);
    return load;
}

Load limit_of(const Model& model) {
    Load limit{model.microbatch_tokens, no_limit, no_limit};
    if (model.most_items > 0) limit.items = model.most_items;
    if (model.most_video_seconds > 0) limit.video_us = microseconds(model.most_video_seconds);
    return limit;
}

std::string who_says_tokens(const Model& model) {
    constexpr std::string_view option = "--microbatch-tokens";
    const auto of_file = model.microbatch_tokens_of_file;
    const std::string who = !of_file       ? fmt::format("microbatch_tokens of its model file, or {}", option)
                            : *of_file > 0 ? std::string(option)
                                           : fmt::format("{} or its default", option);
    return who + "; --too-long own packs it alone";
}

bool fits(const Load& load, const Load& limit) {
    return load.tokens <= limit.tokens && load.items <= limit.items && load.video_us <= limit.video_us;
}

std::vector<Load> within(std::vector<Load> loads, const Load& limit) {
    for (Load& load : loads)
        if (!fits(load, limit)) load = limit;
    return loads;
}

Bins bins_in_order(const std::vector<Load>& loads, const Load& limit) {
    Bins bins;
    Load open;
    for (std::size_t i = 0; i < loads.size(); ++i) {
        if (bins.empty() || !fits(open + loads[i], limit)) {
            bins.emplace_back();
            open = {};
        }
        bins.back().push_back(i);
        open = open + loads[i];
    }
    return bins;
}

Bins bins_first_fit_decreasing(const std::vector<Load>& loads, const Load& limit) {
    std::vector<std::size_t> order(loads.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return std::tie(loads[b].tokens, loads[b].video_us) < std::tie(loads[a].tokens, loads[a].video_us);
    });
    Bins bins;
    OpenBins open(loads.size(), limit);
    for (const std::size_t i : order) {
        const std::size_t bin = *open.first(loads[i]);  // an empty one takes it
        if (bin == bins.size()) bins.emplace_back();
        bins[bin].push_back(i);
        open.put(bin, loads[i]);
    }
    return in_sample_order(std::move(bins));
}

Bins parted(const Bins& bins, const std::vector<Load>& loads, std::size_t count) {
    return Parting(bins, loads).run(count);
}

void normalise(Works& works, std::size_t count) {
    std::vector<double> sum(works.kinds);
    for (std::size_t i = 0; i < works.of.size(); ++i) sum[i % works.kinds] += works.of[i];
    for (std::size_t i = 0; i < works.of.size(); ++i)
        if (sum[i % works.kinds] > 0) works.of[i] *= static_cast<double>(count) / sum[i % works.kinds];
}

std::optional<Bins> bins_spread(const std::vector<Load>& loads, const Load& limit, const Works& works,
                                std::size_t count, Even even) {
    std::vector<double> largest;
    for (std::size_t i = 0; i < loads.size(); ++i) {
        const auto first = works.of.begin() + static_cast<std::ptrdiff_t>(i * works.kinds);
        largest.push_back(*std::max_element(first, first + static_cast<std::ptrdiff_t>(works.kinds)));
    }
    std::vector<std::size_t> order(loads.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return largest[a] > largest[b]; });
    EvenBins bins(works, limit, count, even);
    for (const std::size_t i : order)
        if (!bins.put(i, loads[i])) return std::nullopt;
    return in_sample_order(bins.take());
}

}  // namespace pipeweaver::workloads
