// What each layer of a job's model takes on a batch.
#pragma once

#include "pipeweaver/emulator/layer_times.hpp"
#include "pipeweaver/planner/job.hpp"

#include <vector>

namespace pipeweaver::planner {

/// All layers in the mean over the batch's microbatches, each whole on one GPU of a rank. Throws as
/// emulator::layer_times(). Pre: the batch has a microbatch.
[[nodiscard]] std::vector<emulator::LayerTime> layers_of(const emulator::Setup& setup, const Batch& batch);

}  // namespace pipeweaver::planner
