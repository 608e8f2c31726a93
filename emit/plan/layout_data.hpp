// What action lists say of a plan's modules with layouts of their own.
#pragma once

#include "pipeweaver/emit/actions.hpp"

namespace pipeweaver::emit {

/// Positions of a module that make one row of what it gives to others; 1 where nothing takes its output.
[[nodiscard]] std::int64_t output_reduction(const workloads::Model& model, std::size_t module);

/// What each copy of a chain takes of a unit; none: all GPUs of a rank run the chain together, or the unit has no work
/// there.
[[nodiscard]] std::vector<emulator::Share> shares_of_unit(const planner::Job& job,
                                                          const partition::Partition& partition, std::size_t chain,
                                                          const emulator::Unit& unit);

/// What each microbatch's loss counts in the step: its loss tokens over all, or where there are none its positions in
/// the last chain. `units` of each microbatch and chain.
[[nodiscard]] std::vector<double> microbatch_weights(
    const partition::Partition& partition, const planner::Batch& batch,
    const std::vector<std::vector<std::vector<emulator::Unit>>>& units);

/// The pieces of a share, one behind the other.
[[nodiscard]] std::vector<emulator::Piece> pieces_of(const emulator::Share& share);

/// Adds GPUs, layouts and shares, and the stages of modules in phases.
void add_layouts(const planner::Job& job, const planner::ReplicaPlan& replica, ReplicaData& data);

}  // namespace pipeweaver::emit
