// A cut of one chain, tuned as engineers do it by hand: layers go from stage to stage while the step gets shorter.
//
//   round    every move of a layer from one stage to another, those between passing one on (of many stages: to a
//            neighbour); the best of them is taken, or all that gain where these together are better
//
// Determinism  A function of the cut and of what `step_of` says: not of the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/units.hpp"
#include "pipeweaver/partition/partition.hpp"

#include <cstddef>
#include <functional>
#include <optional>

namespace pipeweaver::partition {

struct Tuning {
    /// How long a step of the cut is; none: it does not run. May be called from several threads.
    std::function<std::optional<Duration>(const Partition&)> step_of;
    std::size_t most_steps = 0;       ///< that are asked for
    std::function<bool()> is_over{};  ///< asked before each round; null: it never is
};

struct Tuned {
    Partition partition;  ///< named "tuned"
    Duration step{};
};

/// None: no move makes the step shorter, or the cut itself does not run. Pre: one chain of all modules.
[[nodiscard]] std::optional<Tuned> tune(const emulator::Setup& setup, const Partition& chain, const Tuning& tuning,
                                        const Executor& execute);

}  // namespace pipeweaver::partition
