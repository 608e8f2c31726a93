// The multiple-choice knapsack: of each item one option, so that all fit and cost least.
//
// Source       Kellerer, Pferschy, Pisinger, Knapsack Problems (2004), chapter 11: dynamic programming over the items,
//              one value for each number of GPUs; here in units of the options' greatest common divisor.
// Determinism  of choices that cost the same, the one whose last item takes the earliest of its options, and so on.
#pragma once

#include "pipeweaver/capacity/jobs.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::capacity {

struct KnapsackOption {
    std::int64_t gpus = 0;  ///< 0 or more
    Wide cost = 0;          ///< 0 or more; all items' together below 2^126
};

using KnapsackItem = std::vector<KnapsackOption>;

/// The option of each item; nothing where none fit together. Throws Error{limit} where items x GPUs x options are more
/// than 200,000,000. Pre: no item is without options.
[[nodiscard]] std::optional<std::vector<std::size_t>> least_cost(std::span<const KnapsackItem> items,
                                                                 std::int64_t capacity);

}  // namespace pipeweaver::capacity
