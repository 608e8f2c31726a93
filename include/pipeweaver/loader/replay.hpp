// A loader and the steps that it feeds, replayed: workers make packs ahead, GPUs take them, and wait where none is
// ready.
//
// A pack       what a GPU is given at once: a microbatch. Of each replica they are numbered in the order it takes them.
// A worker     makes the packs w, w + W, w + 2W, ... of its replica (of W workers), one after the other. It begins
//              pack i when pack i - W * prefetch was taken, as PyTorch's DataLoader has it (torch.utils.data,
//              `_try_put_index`). What needs a core takes one of the queue's, in the order in which cores were asked
//              for (then by worker), and keeps it until it is done.
// No worker    the training process makes each pack itself, when it needs it, and its GPU waits.
// Units        Duration is integer nanoseconds.
// Determinism  a function of its arguments. What happens at one instant: work ends, packs are taken, work begins.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace pipeweaver::loader {

/// The queue of each replica.
struct Queue {
    std::int64_t workers = 4;              ///< 0: the training process loads
    std::int64_t prefetch = 2;             ///< packs that each worker makes ahead, 1 or more
    std::optional<std::int64_t> cores{};   ///< that workers share; none: as many as they need
    std::optional<std::int64_t> window{};  ///< samples that a worker gathers before it packs any of them

    friend bool operator==(const Queue&, const Queue&) = default;
};

/// When packs are taken, and when replicas wait for each other.
struct Taking {
    bool whole_step = false;             ///< all of a step before it begins, instead of each when it is needed
    bool microbatches_together = false;  ///< replicas wait for each other at each microbatch, not at each step alone

    friend bool operator==(const Taking&, const Taking&) = default;
};

/// A piece of a worker's work, done without interruption.
struct Piece {
    Duration time{};
    bool core = true;  ///< false: it waits for storage and needs no core

    friend bool operator==(const Piece&, const Piece&) = default;
};

struct Pack {
    std::vector<Piece> pieces;  ///< in the order that a worker does them
    Duration copy{};            ///< behind the worker: one at a time for the replica, as packs come
    std::int64_t samples = 0;

    friend bool operator==(const Pack&, const Pack&) = default;
};

/// A step of a replica: how long its GPUs take from each pack to where they need the next, or end the step.
using StepTimes = std::vector<Duration>;

struct Replica {
    std::vector<StepTimes> steps;  ///< as many in all replicas; each takes as many packs as it has times, 1 or more
    std::vector<Pack> packs;       ///< of all steps

    friend bool operator==(const Replica&, const Replica&) = default;
};

struct Step {
    Duration begin{}, end{};       ///< of all replicas: the next begins where it ends
    std::vector<Duration> waited;  ///< by replica: for packs

    friend bool operator==(const Step&, const Step&) = default;
};

/// Replays all steps, from an empty queue. Pre: a replica or more, packs and steps as above, no time below 0; under
/// `microbatches_together` step n has as many times in all replicas. Time O(pieces * log), of packs alone where
/// each worker has a core.
[[nodiscard]] std::vector<Step> replay(const Queue& queue, const Taking& taking, const std::vector<Replica>& replicas);

}  // namespace pipeweaver::loader
