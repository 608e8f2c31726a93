// How many workers, packs ahead and cores are enough, and how cores are shared out to stages.
//
// Determinism  functions of their arguments.
#pragma once

#include "pipeweaver/loader/replay.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::loader {

/// What is looked for, at most.
constexpr std::int64_t most_workers_advised = 64, most_prefetch_advised = 16;

/// Whether nothing waits for packs in the second half of the steps: the queue begins empty, and fills in the first.
[[nodiscard]] bool is_fed(const std::vector<Step>& steps);

/// What the replicas' packs take at least to make, whatever the order: workers, cores and the copy engine of the
/// busiest replica without a pause. 0 without workers.
[[nodiscard]] Duration least_time(const Queue& queue, const std::vector<Replica>& replicas);

/// The replicas to try so many workers on: the more gather windows, the more steps until each has gathered some. None:
/// so many are not tried, nor more.
using ReplicasFor = std::function<std::optional<std::vector<Replica>>(std::int64_t workers)>;

/// The fewest workers of each replica with which nothing waits, whatever the prefetch, also not once what was made
/// before the first step is used up (least_time() is no longer than the steps); then the least prefetch, and the
/// fewest cores from which on, up to a core for each worker, nothing waits. The window is that of `queue`. None: not
/// with most_workers_advised, or with those that are tried. Pre: as replay().
[[nodiscard]] std::optional<Queue> enough(const Queue& queue, const Taking& taking, const ReplicasFor& replicas_for);

/// Shares `cores` out to stages that run beside each other, each with cores of its own, so that the slowest of them
/// (load / cores) is as fast as can be; of equal loads the first gets more. At least one each, and none for a load of
/// 0. What BGL (NSDI 2023) asks of its preprocessing, by giving each core to the stage that is slowest then, which is
/// optimal: no allocation has a faster slowest stage. None: there are fewer cores than stages with a load.
[[nodiscard]] std::optional<std::vector<std::int64_t>> share_cores(std::span<const Duration> loads, std::int64_t cores);

}  // namespace pipeweaver::loader
