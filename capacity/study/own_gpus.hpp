// Of a cell the point with modules on GPUs of their own, by the same groups and prices as `pipeweaver groups`.
#pragma once

#include "pipeweaver/capacity/cell.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <string>
#include <vector>

namespace pipeweaver::capacity {

/// The best split of the cell's GPUs, each module with work in a group of its own; refused where there is none, or
/// where options ask for what groups have not. `setup`: the cell's, with its headroom. Pre: microbatches.
[[nodiscard]] Point point_on_own_gpus(const Cell& cell, emulator::Setup setup,
                                      const std::vector<workloads::Microbatch>& microbatches);

/// The `pipeweaver groups` that prints the point's step. Pre: a judged point of point_on_own_gpus().
[[nodiscard]] std::string command_on_own_gpus(const Cell& cell, const Point& point);

}  // namespace pipeweaver::capacity
