// How microbatches are dealt where what feeds the replicas decides how long their steps are.
//
// Determinism  functions of their arguments.
#pragma once

#include "pipeweaver/loader/loader.hpp"
#include "pipeweaver/partition/replicas.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace pipeweaver::planner {

/// What the queue of a replica takes for each microbatch if it does nothing else: its workers, their cores or the
/// copies, whichever are slowest. Without workers: the training process.
[[nodiscard]] std::vector<Duration> loading_times(const loader::Loader& loader, const workloads::Model& model,
                                                  const std::vector<workloads::Sample>& samples,
                                                  const std::vector<workloads::Microbatch>& microbatches);

/// What a replica takes for microbatches, by sums alone: a pipeline's stages share their costs, after it was filled.
struct Feeding {
    std::vector<Duration> costs{};    ///< of each microbatch: partition::microbatch_costs
    std::vector<Duration> loading{};  ///< of each: loading_times
    std::int64_t stages = 1;
    bool beside = true;  ///< workers load while GPUs train; false: the training process does one after the other
};

/// Of the slowest replica.
[[nodiscard]] Duration slowest_fed(const Feeding& of, const partition::Shares& shares);

/// Shares with which the slowest replica is faster than with `by_cost`, balanced by costs and loading in one of four
/// mixtures. None: the loader does not decide with `by_cost`, takes loader::most_work, or no mixture is faster. Pre:
/// two replicas or more.
[[nodiscard]] std::optional<partition::Shares> shares_by_loading(const Feeding& of, const partition::Shares& by_cost);

}  // namespace pipeweaver::planner
