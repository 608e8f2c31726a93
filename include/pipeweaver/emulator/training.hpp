// How a framework trains, beyond the layout: what replicas share, what overlaps, what the host costs.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <cstdint>

namespace pipeweaver::emulator {

/// The defaults are Megatron-LM's with its distributed optimizer: gradients are reduced after a rank's last backward.
struct Training {
    /// What the copies of a weight share out among them (ZeRO, arXiv 1910.02054): 0 nothing, 1 the optimizer's state,
    /// 2 gradients too, 3 weights too. From 2 on gradients are reduced in every backward; with 3 a layer's weights are
    /// gathered before each of its passes, while the layer in front of it runs.
    int zero = 1;

    /// Gradients are reduced in buckets of at least this size as soon as the last backward of their layers is through,
    /// beside the backwards that are left. 0: in one piece after the rank's last backward. Pre: 0 if zero >= 2.
    Bytes bucket{};

    /// Of the host for each kernel that it launches. 0: launches are never waited for.
    Duration launch{};

    /// Time of compute kernels that run beside traffic of replicas, over their time alone.
    double overlap_slowdown = 1;

    /// Between a GPU and its host's memory, for offloaded activations: PCIe 5.0 x16 at 80 %, assumed.
    Bandwidth host_link{50'000'000'000};

    friend bool operator==(const Training&, const Training&) = default;
};

}  // namespace pipeweaver::emulator
