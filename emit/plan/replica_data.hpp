// What action lists say of a plan's modules with layouts of their own.
#pragma once

#include "pipeweaver/emit/actions.hpp"

namespace pipeweaver::emit {

/// What each copy of a chain takes of a unit; none: all GPUs of a rank run the chain together, or the unit has no work
/// there.
[[nodiscard]] std::vector<emulator::Share> shares_of_unit(const planner::Job& job,
                                                          const partition::Partition& partition, std::size_t chain,
                                                          const emulator::Unit& unit);

/// The pieces of a share, one behind the other.
[[nodiscard]] std::vector<emulator::Piece> pieces_of(const emulator::Share& share);

}  // namespace pipeweaver::emit
