// Attention as it runs in training: over sequences of different lengths, packed into one pass.
#pragma once

#include "pipeweaver/costdb/operators.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace pipeweaver::costdb {
class CostDatabase;
}

namespace pipeweaver::emulator {

/// Attention over packed sequences; `shape.batch` and `shape.seq_len` are not used. Fused (flash attention) it is the
/// database's; else scores, softmax and dropout go through memory, of whole squares: two products at 0.6 of the peak or
/// as fast as memory takes 2 bytes a score, and 9 bytes a score of element-wise traffic; backward four such products
/// and 12 bytes a score.
struct PackedAttention {
    static constexpr std::string_view op = "attention";
    costdb::Attention shape;
    std::vector<std::int64_t> lengths;
    std::vector<std::int64_t> keys{};  ///< cross attention: what each sequence attends to; empty: to itself
    std::int64_t value_dim = 0;        ///< of values narrower than keys, priced as padded to them; 0: as wide
    bool fused = true;
    double density = 1;  ///< of the pairs, those that are worked out: its time is so much of the whole's

    /// The attention over equal sequences that the database is asked for in its place.
    [[nodiscard]] costdb::Attention question() const;
    [[nodiscard]] costdb::Cost cost(const costdb::CostDatabase& costs) const;
};

}  // namespace pipeweaver::emulator
