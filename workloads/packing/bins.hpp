// Which samples share a microbatch: bins with several limits.
#pragma once

#include "pipeweaver/workloads/batch.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::workloads {

/// What a microbatch has a limit of. Clips are added up in microseconds: sums of doubles depend on their order.
struct Load {
    std::int64_t tokens = 0;
    std::int64_t items = 0;
    std::int64_t video_us = 0;

    friend bool operator==(const Load&, const Load&) = default;
    friend Load operator+(const Load& a, const Load& b) {
        return {a.tokens + b.tokens, a.items + b.items, a.video_us + b.video_us};
    }
    friend Load operator-(const Load& a, const Load& b) {
        return {a.tokens - b.tokens, a.items - b.items, a.video_us - b.video_us};
    }
};
[[nodiscard]] Load load_of(const Sample& sample);

/// More than a batch has of anything; twice as many are still a number.
constexpr std::int64_t no_limit = INT64_MAX / 4;

/// Of a microbatch of the model.
[[nodiscard]] Load limit_of(const Model& model);
/// What says how many tokens a microbatch of the model holds, and the way out of it: words for an error.
[[nodiscard]] std::string who_says_tokens(const Model& model);
[[nodiscard]] bool fits(const Load& load, const Load& limit);

/// The loads, but those above the limit as large as it is: whatever has one of these has a bin of its own.
[[nodiscard]] std::vector<Load> within(std::vector<Load> loads, const Load& limit);

/// The samples of each microbatch, in their order.
using Bins = std::vector<std::vector<std::size_t>>;

/// Closes a bin when the next sample does not fit. One above the limit is alone in its bin.
[[nodiscard]] Bins bins_in_order(const std::vector<Load>& loads, const Load& limit);

/// The longest first, each into the first bin that can take it. Time O(samples * log bins) where one limit binds. Pre:
/// no load is above the limit.
[[nodiscard]] Bins bins_first_fit_decreasing(const std::vector<Load>& loads, const Load& limit);

/// The bins, of which those with the most tokens are parted in two, each where its halves differ least, until there are
/// `count`; as they are where they have too few samples for that. Samples and halves keep their order. Time
/// O(samples + bins * log bins). Pre: count >= bins.
[[nodiscard]] Bins parted(const Bins& bins, const std::vector<Load>& loads, std::size_t count);

/// What a sample adds to each of several sums that are to be even over the bins: `kinds` numbers a sample.
struct Works {
    std::size_t kinds = 0;
    std::vector<double> of;
};

/// Makes the mean of `count` bins 1 in each kind; kinds that no sample has are left at 0.
void normalise(Works& works, std::size_t count);

/// What a sample is put into a bin for: that its largest sum grows least, or the squares of all of them together.
enum class Even : std::uint8_t { largest, squares };

/// `count` bins with every sum as even as it gets, the largest sample first, each into the best of the least loaded
/// bins. Pre: works are normalised, no load is above the limit. None: the samples do not fit that way.
[[nodiscard]] std::optional<Bins> bins_spread(const std::vector<Load>& loads, const Load& limit, const Works& works,
                                              std::size_t count, Even even);

}  // namespace pipeweaver::workloads
