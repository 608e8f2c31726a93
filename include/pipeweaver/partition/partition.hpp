// How a model is cut into stages, and microbatches into the units that pass them. The ways to cut are in
// partitioners.hpp.
#pragma once

#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::partition {

struct Partition {
    std::string name;                  ///< of its partitioner
    std::int64_t chunks_per_rank = 1;  ///< stages of a rank, the most of any
    std::vector<emulator::Chain> chains;
    std::vector<std::int64_t> unit_items;  ///< per chain: most items of a unit; 0: the whole microbatch at once
    std::vector<std::string> notes;        ///< what decided it, for the report
    emulator::ModuleLayouts layouts{};     ///< per module; none: each as the job's layout. No chain has those in phases
    std::vector<emulator::Recompute> modes = emulator::usual_modes();  ///< memory modes that every pass chooses from
};

/// Modules that no chain has; the rest of the step waits for them.
[[nodiscard]] inline std::vector<std::size_t> phase_modules(const Partition& partition) {
    return emulator::phase_modules(partition.layouts);
}

/// Whether copies of a module share a rank's GPUs, in chains.
[[nodiscard]] bool shares_ranks(const Partition& partition);

/// What Partition::chunks_per_rank says. Pre: there are stages.
[[nodiscard]] std::int64_t most_stages_of_a_rank(const Partition& partition);

/// The chains of `partition` in a row, as one chain that whole microbatches pass: what a framework with a single row of
/// stages can run of it, all modules with the layout of the job. Segment k has the stages k * ranks ... k * ranks +
/// ranks - 1.
[[nodiscard]] Partition in_one_chain(const Partition& partition, const workloads::Model& model);

/// A single chain of two stages on each rank with its second row turned round: on rank k lie the stages k and
/// 2 P - 1 - k. Any other partition stays as it is.
[[nodiscard]] Partition like_a_v(Partition partition, std::int64_t ranks);

/// The units that pass the chains: per microbatch, then per chain and after the chains per module in phases, whose
/// units are single items. A module without items in a microbatch has no unit there; n items make ceil(n / unit_items)
/// units whose sizes differ by one at most.
[[nodiscard]] std::vector<std::vector<std::vector<emulator::Unit>>> units(
    const Partition& partition, const workloads::Model& model, const std::vector<workloads::Microbatch>& microbatches);

/// What the step of these units, cut by `partition`, is built from; it points to `setup`. The caller gives it a name.
[[nodiscard]] emulator::StepInput step_input(const emulator::Setup& setup, const Partition& partition,
                                             std::vector<std::vector<std::vector<emulator::Unit>>> units);

/// Every microbatch made as large as the largest, for frameworks with fixed shapes.
struct Padded {
    std::vector<workloads::Microbatch> microbatches;
    std::int64_t tokens = 0;                             ///< of every microbatch
    std::int64_t items = 0;                              ///< of every microbatch
    std::int64_t item_patches = 0;                       ///< of every item
    std::int64_t real_tokens = 0, real_patches = 0;      ///< sums before padding
    std::int64_t padded_tokens = 0, padded_patches = 0;  ///< sums after padding
};
[[nodiscard]] Padded pad(const std::vector<workloads::Microbatch>& microbatches);

/// Whether any has become larger.
[[nodiscard]] constexpr bool is_padded(const Padded& all) {
    return all.real_tokens != all.padded_tokens || all.real_patches != all.padded_patches;
}

/// Positions of a microbatch in a module: its samples for the backbone, its items for an encoder or generator.
[[nodiscard]] emulator::PassShape shape_in(const workloads::Module& module, const workloads::Microbatch& microbatch,
                                           std::size_t first_item, std::size_t items);

}  // namespace pipeweaver::partition
