// Which positions of a unit each copy of a module takes.
#pragma once

#include "pipeweaver/emulator/module_layout.hpp"
#include "pipeweaver/emulator/operators.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pipeweaver::emulator {

/// Positions `first` to `end - 1` of a sequence of the unit.
struct Piece {
    std::size_t sequence = 0;  ///< index into PassShape::lengths
    std::int64_t first = 0, end = 0;

    friend bool operator==(const Piece&, const Piece&) = default;
};

/// What a copy runs: whole sequences, then its part of those that all share.
struct Share {
    std::vector<Piece> whole, part;
};

/// Per copy. `dealt`: longest first, each to the copy with the least so far, by forward FLOPs. `split`: the sequences
/// one behind the other, cut into as many parts as there are copies, each a multiple of `quantum` positions, the last
/// ones shorter or empty. `hybrid`: of the longest none, or as many as leave whole rounds, are split, whatever makes
/// the fullest copy least full; a split FLOP counts a tenth more. `counted`: in their
/// order, equally many, of the first copies one more. `quantum` is the positions of an output row
/// (ModelEdge::token_reduction).
[[nodiscard]] std::vector<Share> shares_of(const workloads::Architecture& network, const PassShape& shape,
                                           const ModuleLayout& module, std::int64_t quantum = 1);

/// Which copy is the fullest: of what lies whole on it, by forward FLOPs (what takes longest) or positions (memory).
enum class Fullest : std::uint8_t { by_flops, by_positions };

/// The sequences of the fullest copy: those that lie whole on it, then all that are split. With one copy `shape` as it
/// is.
[[nodiscard]] PassShape shape_of_copy(const workloads::Architecture& network, const PassShape& shape,
                                      const ModuleLayout& module, Fullest fullest = Fullest::by_flops);

/// A unit's shape as the fullest copy has it, made where there are several alone. Keeps a reference to `shape`.
class OnCopy {
public:
    OnCopy(const workloads::Architecture& network, const PassShape& shape, const ModuleLayout& module,
           Fullest fullest = Fullest::by_flops)
        : shape_(module.copies == 1 ? &shape : &own_) {
        if (module.copies > 1) own_ = shape_of_copy(network, shape, module, fullest);
    }
    OnCopy(const OnCopy&) = delete;
    OnCopy& operator=(const OnCopy&) = delete;

    const PassShape& shape() const { return *shape_; }

private:
    PassShape own_;
    const PassShape* shape_;
};

}  // namespace pipeweaver::emulator
