// A published run with nothing unknown left: what its step is made of.
#pragma once

#include "pipeweaver/emulator/layout.hpp"
#include "pipeweaver/emulator/recompute.hpp"
#include "pipeweaver/validation/published_run.hpp"
#include "pipeweaver/workloads/model.hpp"
#include "validation/multimodal_run.hpp"
#include "validation/stacks.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::validation {

struct TrainingRun {
    std::string device;  ///< canonical name
    std::string part;    ///< what it is called in tables of errors: the device, or a part of its own (parts.hpp)
    std::span<const emulator::Recipe> own{};  ///< recipes in place of shipped ones of their names
    RunRecipe how;
    costdb::Dtype dtype = costdb::Dtype::bf16;
    workloads::Architecture network;              ///< vocabulary padded to whole tiles of 128 columns on every GPU
    std::optional<workloads::Adapters> adapters;  ///< that alone are trained
    std::int64_t seq = 0;
    std::int64_t document = 0;  ///< tokens of one of the documents that are packed into a sequence; 0: one is all of it
    emulator::Layout layout;
    std::int64_t virtual_stages = 1;
    std::int64_t micro_batch = 0, global_batch = 0;  ///< sequences
    /// What a backward computes again. Selective recomputation of Megatron (Korthikanti et al., arXiv 2205.05198,
    /// section 5) repeats attention alone; of others, and where modules are named, norms and activation functions;
    /// half: every second layer, or about as much of each.
    emulator::Recompute recomputation = emulator::Recompute::none;
    bool sequence_parallel = true;
    std::optional<MultimodalRun> multimodal;  ///< in place of network, seq and dtype
    std::vector<std::string> assumed;         ///< what the row does not say

    std::int64_t microbatches() const { return global_batch / (layout.dp * micro_batch); }
};

/// The run, or why it is refused. `own`: recipes in place of shipped ones of their names.
struct Resolved {
    std::optional<TrainingRun> run;
    std::string device;  ///< as far as known
    bool experts = false, multimodal = false;
    std::string refusal;  ///< empty where there is a run
};
[[nodiscard]] Resolved resolve(const PublishedRun& row, std::span<const emulator::Recipe> own = {});

/// The layers of each rank of a pipeline of `ranks` with `virtual_stages`: equal; or, where embedding and head count as
/// a layer each (Megatron's account-for-embedding-in-pipeline-split), one fewer on the first and the last. Empty: they
/// cannot be cut so.
[[nodiscard]] std::vector<std::int64_t> cut_layers(std::int64_t layers, std::int64_t ranks,
                                                   std::int64_t virtual_stages);

}  // namespace pipeweaver::validation
