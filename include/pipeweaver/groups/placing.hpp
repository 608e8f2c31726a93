// Groups on their GPUs: layouts, memory, and what a step takes.
#pragma once

#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/emulator/recompute.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/groups/allocation.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::groups {

/// A group as it was placed.
struct Placed {
    std::string name;
    std::vector<std::size_t> modules{};  ///< indices into the model's; of shared GPUs none
    std::int64_t tp = 1, cp = 1, pp = 1, dp = 1;
    int zero = 1;
    emulator::Recompute recompute{};
    Bytes peak{};                         ///< of the fullest GPU, with all that runs ahead
    Spent spent;                          ///< of its stages, to be shared among as many
    std::vector<Bytes> base{}, held{};    ///< of a GPU of each stage: all the time, and of a round ahead
    emulator::Chain chain{};              ///< its layers, by stage
    std::int64_t copies = 1, joined = 1;  ///< replicas that share a microbatch's items; microbatches passed at once
    std::vector<emulator::StaticMemory> at_rest{};  ///< of `base`, per stage: weights, states, buffers
    Bytes received{};                               ///< of `base`: rounds that wait at a bridge
    std::vector<std::int64_t> ahead{};              ///< rounds that each stage holds at most

    std::int64_t gpus() const { return tp * cp * pp * dp; }
    /// Layers of each stage.
    std::vector<std::int64_t> layers() const;
};

struct Placing {
    Duration step{};
    std::int64_t rounds = 0;
    std::vector<Placed> groups;  ///< in the model's order
    Split split{};               ///< with the choice of each group alone

    std::int64_t gpus() const;
    /// The smaller the better.
    std::pair<Duration, std::int64_t> key() const { return {step, gpus()}; }
};

}  // namespace pipeweaver::groups
