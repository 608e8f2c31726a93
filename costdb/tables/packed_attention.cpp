// Attention over sequences that are not all alike, by way of a batch of equal ones.
#include "costdb/tables/answer.hpp"
#include "costdb/tables/checks.hpp"
#include "pipeweaver/costdb/database.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace pipeweaver::costdb {

namespace {

// Nine of ten shapes beyond the tables are within this, in the median of devices and kinds; no table holds rectangular
// or windowed attention, so it is not known better.
constexpr double unlike_percent = 32;

/// Scores that a kernel works out for one sequence, in the units of the square that `causal` halves: of q positions
/// the last sees all k keys, the one before it one less, and none more than `window`.
double scores(bool causal, std::int64_t queries, std::int64_t keys, std::int64_t window) {
    const auto q = static_cast<double>(queries), k = static_cast<double>(keys);
    const auto w = std::min(k, static_cast<double>(window));
    if (!causal) return q * w;
    const double before = k - q;                           // keys that all positions may see
    const double growing = std::clamp(w - before, 0., q);  // positions that do not see a whole window yet
    return 2 * (growing * before + growing * growing / 2 + (q - growing) * w);
}

void check(const Attention& shape, const PackedSequences& packed) {
    if (packed.lengths.empty()) fail(ErrorKind::input, "lengths: are none, at least one is needed");
    if (!packed.keys.empty() && packed.keys.size() != packed.lengths.size())
        fail(ErrorKind::input, "keys: are {}, as many as lengths are needed, {}", packed.keys.size(),
             packed.lengths.size());
    for (const auto length : packed.lengths) require("length", length);
    for (std::size_t i = 0; i < packed.keys.size(); ++i) {
        require("keys", packed.keys[i]);
        if (shape.causal && packed.keys[i] < packed.lengths[i])
            fail(ErrorKind::input, "keys: are {}, causal attention of {} positions needs as many at least",
                 packed.keys[i], packed.lengths[i]);
    }
    if (packed.window) require("window", *packed.window);
    require("q_heads", shape.q_heads);
    require("kv_heads", shape.kv_heads);
}

bool all_equal(std::span<const std::int64_t> values) {
    return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

/// A batch of equal sequences in place of others.
struct Equal {
    Attention batch;
    double scale = 1;     ///< scores of the others / its scores
    bool as_they = true;  ///< the others are equal, and attend to themselves
    bool is_square = true;
};

Equal equal_of(const Attention& shape, const PackedSequences& packed) {
    check(shape, packed);
    const auto heads = static_cast<double>(shape.q_heads), kv_heads = static_cast<double>(shape.kv_heads);
    double area = 0;
    double positions = 0;  // of as many queries, outputs, keys and values as these
    std::int64_t longest = 1;
    Equal equal{shape};
    for (std::size_t i = 0; i < packed.lengths.size(); ++i) {
        const auto q = packed.lengths[i];
        const auto k = packed.keys.empty() ? q : packed.keys[i];
        area += scores(shape.causal, q, k, packed.window.value_or(k));
        positions += (heads * static_cast<double>(q) + kv_heads * static_cast<double>(k)) / (heads + kv_heads);
        equal.is_square = equal.is_square && q == k && packed.window.value_or(k) >= k;
        longest = std::max({longest, q, k});
    }
    auto& batch = equal.batch;
    equal.as_they = equal.is_square && all_equal(packed.lengths);
    if (equal.as_they) {
        batch.seq_len = packed.lengths.front();
        batch.batch = static_cast<std::int64_t>(packed.lengths.size());
        return equal;
    }
    batch.seq_len = std::clamp<std::int64_t>(std::llround(area / positions), 1, longest);
    batch.batch = std::max<std::int64_t>(1, std::llround(positions / static_cast<double>(batch.seq_len)));
    const auto length = static_cast<double>(batch.seq_len);
    equal.scale = area / (static_cast<double>(batch.batch) * length * length);
    return equal;
}

}  // namespace

Attention equal_batch(const Attention& shape, const PackedSequences& packed) { return equal_of(shape, packed).batch; }

Cost CostDatabase::packed_attention(const Attention& shape, const PackedSequences& packed) const {
    const auto equal = equal_of(shape, packed);
    const auto answer = cost(equal.batch);
    if (equal.as_they) return answer;
    return rounded({static_cast<double>(answer.duration.count()) * equal.scale,
                    at_best(equal.is_square ? Basis::interpolated : Basis::extrapolated, answer.basis),
                    equal.is_square ? answer.error_percent : std::max(answer.error_percent, unlike_percent)});
}

}  // namespace pipeweaver::costdb
