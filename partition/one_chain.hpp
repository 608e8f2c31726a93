// All modules of a model, or some of them, as one chain of stages: what its partitioners share.
#pragma once

#include "pipeweaver/partition/partitioners.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pipeweaver::partition {

/// The layers of these modules, each a range of its own, in the order of the modules.
[[nodiscard]] std::vector<emulator::LayerRange> layers_of(const workloads::Model& model,
                                                          const std::vector<std::size_t>& modules);

/// The numbers of the model's modules from `begin` to `end` (exclusive).
[[nodiscard]] std::vector<std::size_t> modules_between(std::size_t begin, std::size_t end);

/// Per layer: forward and backward of the whole sample, in ns, with what stands around it; as models are usually
/// trained.
[[nodiscard]] std::vector<std::int64_t> times_of(const emulator::Setup& setup, const Sample& sample,
                                                 const std::vector<emulator::LayerRange>& layers,
                                                 const emulator::ModuleLayouts& layouts = {});

/// Stages of `layers` that end (exclusive) there; stage k is on rank k mod ranks.
[[nodiscard]] Partition one_chain(const emulator::Setup& setup, std::string name, std::int64_t chunks_per_rank,
                                  const std::vector<emulator::LayerRange>& layers,
                                  const std::vector<std::size_t>& ends);

/// Stages that ranks have with so many chunks each.
[[nodiscard]] inline std::size_t stages_of(const emulator::Setup& setup, std::int64_t chunks_per_rank) {
    return static_cast<std::size_t>(setup.layout.pp * chunks_per_rank);
}

}  // namespace pipeweaver::partition
