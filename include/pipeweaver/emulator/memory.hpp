// What a rank holds all the time, and what a step is short of where it does not fit.
#pragma once

#include "pipeweaver/base/ids.hpp"
#include "pipeweaver/base/units.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <string>

namespace pipeweaver::emulator {

/// What a rank holds all the time.
struct StaticMemory {
    Bytes weights, gradients, optimizer;
    Bytes workspace;    ///< gradients of one layer in bf16, kept by Transformer Engine
    Bytes buffers;      ///< receive buffers
    Bytes apart{};      ///< of weights: shards that lie beside the whole ones that were gathered
    Bytes at_update{};  ///< what the optimizer's update holds, where that may be more than all these; else 0
    Bytes total() const { return weights + gradients + optimizer + workspace + buffers; }
    friend bool operator==(const StaticMemory&, const StaticMemory&) = default;
};

/// The part of the usable memory that is kept free, in parts per million. Formulas are a few per cent off, and what an
/// allocator gives out is not what it takes where shapes vary: a plan that fills a GPU to the last byte fails on it.
struct Headroom {
    std::int64_t parts_per_million = 0;

    double fraction() const { return static_cast<double>(parts_per_million) / 1e6; }
    friend bool operator==(const Headroom&, const Headroom&) = default;
};

/// What is kept free at least, unless told otherwise: with activations 2 % larger than said a step still fits.
constexpr Headroom usual_headroom{30'000};

/// " with 3 % kept free", to follow an amount that is usable; without headroom nothing.
[[nodiscard]] std::string kept_free(Headroom headroom);

/// A rank that cannot hold what a step needs there, under any schedule. An answer, not an error: whoever compares
/// partitions or layouts meets many.
struct MemoryShortage {
    RankId rank{};
    StaticMemory held;   ///< all the time
    Bytes passes;        ///< on top of it, for passes that no schedule can do without; 0: `held` alone is too much
    Bytes usable;        ///< of the device, less the headroom
    std::string device;  ///< its name; empty where `task` says all
    std::string task;    ///< the one that does not fit even alone, in words; empty: it is not about one task
    Headroom headroom{};

    Bytes needed() const { return held.total() + passes; }
    Bytes short_by() const { return needed() - usable; }

    /// Rank and bytes: what a user is told.
    [[nodiscard]] std::string text() const;
};

/// Share of a device's memory that tensors may take; the rest is CUDA context, communication buffers and what the
/// allocator reserves above what it gives out (2-8 % in published runs).
constexpr double usable_memory = 0.92;

/// The usable memory of the cluster's device.
[[nodiscard]] Bytes usable_bytes(const workloads::Cluster& cluster);

}  // namespace pipeweaver::emulator
