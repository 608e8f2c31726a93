// One layout judged: its partitions emulated, and what known schedules make of them; of few layouts also what a short
// search does.
//
//   ways     first-stage and balanced under 1f1b, balanced with 2 chunks under interleaved, these and dip under the
//            dual queue; of those that flags can launch without dip and the dual queue;
//            in the end also gpipe on chains, and by flags 4 and 8 chunks. Without a pipeline all modules as one chain
//   long     of a replica with many microbatches some are tried, twice as many as fill the pipeline; the others take as
//   steps    long as these do once it is full
//
// Determinism  A function of the arguments.
#pragma once

#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/planner/layout_choice.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::planner {

/// How closely a layout is judged.
enum class LayoutEffort : std::uint8_t {
    quick,  ///< by the most loaded replica, few settings of recomputation
    whole   ///< by the most loaded replicas, with all they have; about a dozen settings, and by rank
};

struct LayoutTrial {
    std::optional<LayoutTried> tried;  ///< none: no partition fits the memory
    /// Then: of the rank that is furthest from fitting, in the partition that is short of the least.
    std::optional<emulator::MemoryShortage> shortage;
    std::vector<partition::Partition> partitions;  ///< the one that `tried` names, then dip, if it fits
    /// A step with endless memory and without exchanges of gradients, under the policies; none: it was not asked for.
    std::optional<Duration> at_best{};
    bool whole = false;  ///< judged by all that the layout is chosen for
};

/// Judges the layout of `setup`. Pre: it divides model and cluster, and every replica has a microbatch. Throws what
/// building its steps throws.
[[nodiscard]] LayoutTrial try_layout(const LayoutRequest& request, const emulator::Setup& setup, LayoutEffort effort);

/// Searches the partitions of a trial and the best by policies that a plan could take, on the most loaded replica: of a
/// whole trial the best of each kind, for a few rounds; else one, without. Where that is shorter than the known
/// schedules, `tried` says so. Nothing for steps too large for a quick search. Pre: trial.tried, of `setup`.
void search_layout(const LayoutRequest& request, const std::shared_ptr<const emulator::Setup>& setup,
                   LayoutTrial& trial);

}  // namespace pipeweaver::planner
