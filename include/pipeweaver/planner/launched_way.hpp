// How a rung is launched: all that files for its runtime are made of.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/way.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace pipeweaver::planner {

/// A way with its recomputation, and what comes of it on the batch.
struct LaunchedWay : Way {
    std::vector<emulator::Recompute> by_rank{};  ///< of the ranks of replica 0, where it is by rank
    std::vector<std::int64_t> microbatches{};    ///< of each replica
    std::shared_ptr<const Batch> batch{};        ///< in its layout
    partition::Shares assigned{};                ///< which microbatches of it each replica has
    std::int64_t most_tokens = 0;                ///< of the backbone, in the largest microbatch
    std::size_t shapes = 1;                      ///< of the microbatches, see shapes_of()
    Duration makespan{};                         ///< of the slowest replica
    std::vector<std::size_t> slowest{};          ///< of many replicas the slowest, the slowest first
    std::vector<Bytes> peak{};                   ///< of each rank, in the replica where it is the fullest
    Bytes usable{};                              ///< of a GPU, headroom kept free
};

}  // namespace pipeweaver::planner
