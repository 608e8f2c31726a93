// How a model is cut into stages, and microbatches into the units that pass them.
//
// dip       DIP (arXiv 2504.14145, section on the modality-aware partitioner): each module is a chain of its own; a
//           sub-microbatch is the smallest with 95 % of the best efficiency; a module that takes T_i gets
//           floor(T_i / smallest T) segments of equally many layers on each rank. Uneven counts: earlier chunks get one
//           layer more.
// megatron  One chain of all modules, cut by parameters into ranks * chunks_per_rank stages (the largest stage as small
// as
//           possible), microbatches whole: what Megatron-LM's 1F1B and interleaved schedules run.
// balanced  The same chain cut by the time that the sample's microbatches take: the best that a fixed chain can do on
//           average, and what an engineer tunes a Megatron-LM layout to by hand.
#pragma once

#include "pipeweaver/emulator/step.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::partition {

struct Partition {
    std::string name;
    std::int64_t chunks_per_rank = 1;  ///< stages of a rank, the most of any
    std::vector<emulator::Chain> chains;
    std::vector<std::int64_t> unit_items;  ///< per chain: most items of a unit; 0: the whole microbatch at once
    std::vector<std::string> notes;        ///< what decided it, for the report
};

/// What a partition is judged by.
struct Workload {
    const workloads::Model* model = nullptr;
    const workloads::Cluster* cluster = nullptr;
    const costdb::CostDatabase* costs = nullptr;
    emulator::Layout layout;
    const std::vector<workloads::Microbatch>* microbatches = nullptr;  ///< a sample of real ones; not empty
    emulator::LayerStore* store = nullptr;  ///< of costs that others priced under the default training; nothing: none
};

[[nodiscard]] Partition dip(const Workload& workload);

/// Throws Error{input} if the model has fewer layers than stages.
[[nodiscard]] Partition megatron(const Workload& workload, std::int64_t chunks_per_rank);

/// Throws as megatron().
[[nodiscard]] Partition balanced(const Workload& workload, std::int64_t chunks_per_rank);

/// The chains of `partition` in a row, as one chain that whole microbatches pass: what a framework with a single row of
/// stages can run of it. Segment k has the stages k * ranks ... k * ranks + ranks - 1.
[[nodiscard]] Partition in_one_chain(const Partition& partition);

/// What passes the chains: per microbatch, per chain. A module without items in a microbatch has no unit there; n items
/// make ceil(n / unit_items) units whose sizes differ by one at most.
[[nodiscard]] std::vector<std::vector<std::vector<emulator::Unit>>> units(
    const Partition& partition, const workloads::Model& model, const std::vector<workloads::Microbatch>& microbatches);

/// What the step of the workload's microbatches, cut so, is built from; it points to what `workload` points to. The
/// caller gives it a name.
[[nodiscard]] emulator::StepInput step_input(const Workload& workload, const Partition& partition);

/// Every microbatch made as large as the largest, for frameworks with fixed shapes.
struct Padded {
    std::vector<workloads::Microbatch> microbatches;
    std::int64_t tokens = 0;                             ///< of every microbatch
    std::int64_t items = 0;                              ///< of every microbatch
    std::int64_t item_patches = 0;                       ///< of every item
    std::int64_t real_tokens = 0, real_patches = 0;      ///< sums before padding
    std::int64_t padded_tokens = 0, padded_patches = 0;  ///< and after
};
[[nodiscard]] Padded pad(const std::vector<workloads::Microbatch>& microbatches);

/// Positions of a microbatch in a module: its samples for the backbone, its items for an encoder or generator.
[[nodiscard]] emulator::PassShape shape_in(const workloads::Module& module, const workloads::Microbatch& microbatch,
                                           std::size_t first_item, std::size_t items);

}  // namespace pipeweaver::partition
