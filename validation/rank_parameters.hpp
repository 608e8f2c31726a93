// What parameters each pipeline rank of a published run holds, on one GPU.
#pragma once

#include "validation/training_run.hpp"

#include <cstdint>
#include <vector>

namespace pipeweaver::validation {

struct RankLayers {
    std::int64_t first = 0, count = 0;  ///< blocks
    bool embedding = false, head = false;
    std::int64_t common = 0;   ///< parameters that all replicas hold: matrices, norms, embedding, head
    std::int64_t experts = 0;  ///< of the experts on this GPU
};
[[nodiscard]] std::vector<RankLayers> rank_layers(const TrainingRun& run);

/// GPUs that hold the same experts.
[[nodiscard]] inline std::int64_t expert_replicas(const TrainingRun& run) {
    return run.layout.dp * run.layout.tp / run.ep;
}

}  // namespace pipeweaver::validation
