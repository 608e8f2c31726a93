// Blocks: graphs of kernels as max-plus linear maps, so that equal ones need not be replayed again.
//
// Method       Every time in a graph is a maximum of sums, so the state behind it is linear in the state before it,
// over
//              (max, +): out[i] = max over j of (times[i][j] + in[j]). The matrix is small, whatever the graph's size.
//              Matrices compose by the max-plus product, and n equal blocks in a row are one matrix by repeated
//              squaring. All in integers: exactly the nanoseconds of replaying every kernel.
// Source       F. Baccelli, G. Cohen, G. J. Olsder, J.-P. Quadrat, Synchronization and Linearity, Wiley 1992, ch. 2.
// Memory       the pair of net change and peak above the entry; it composes as well.
#pragma once

#include "pipeweaver/emulator/operator_graph.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace pipeweaver::emulator {

/// A matrix over (max, +) with whole nanoseconds; `never` is its zero: no path.
class MaxPlusMatrix {
public:
    static constexpr std::int64_t never = INT64_MIN;

    MaxPlusMatrix() = default;
    MaxPlusMatrix(std::size_t rows, std::size_t columns)
        : rows_(rows), columns_(columns), entries_(rows * columns, never) {}

    static MaxPlusMatrix identity(std::size_t size);

    std::size_t rows() const { return rows_; }
    std::size_t columns() const { return columns_; }
    std::int64_t& at(std::size_t row, std::size_t column) { return entries_[row * columns_ + column]; }
    std::int64_t at(std::size_t row, std::size_t column) const { return entries_[row * columns_ + column]; }

    /// First this map, then `later`. Pre: later.columns() == rows(). Throws Error{input} for sums above 63 bits.
    MaxPlusMatrix then(const MaxPlusMatrix& later) const;

    /// The map of a state. Pre: in.size() == columns(). Throws Error{input} for sums above 63 bits.
    StreamState operator()(std::span<const std::int64_t> in) const;

    friend bool operator==(const MaxPlusMatrix&, const MaxPlusMatrix&) = default;

private:
    std::size_t rows_ = 0, columns_ = 0;
    std::vector<std::int64_t> entries_;
};

struct Block {
    MaxPlusMatrix times;  ///< (streams + outputs) x (streams + inputs)
    MemoryEffect memory;
    std::uint64_t kernels = 0;

    /// This block, and then `later`. Pre: the outputs of this are the inputs of the other. Throws as `times` does, and
    /// for memory above 63 bits.
    Block then(const Block& later) const;

    /// n of them in a row, by squaring. Pre: n >= 1; as many outputs as inputs.
    Block repeated(std::uint64_t n) const;

    /// How long it lasts where all streams are free and all inputs there at once: until all streams are free again and
    /// all outputs there.
    Duration duration() const;

    friend bool operator==(const Block&, const Block&) = default;
};

/// The block of a graph. Time O((kernels + waits) * (streams + inputs)). Throws as replay() and memory_of() do.
[[nodiscard]] Block block_of(const OperatorGraph& graph);

}  // namespace pipeweaver::emulator
