// The two ends of a step whose recipe does not say how layers are launched: in CUDA graphs, where the host is never
// waited for, and kernel by kernel.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/emulator/setup.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// The far end: kernel by kernel.
struct HostBound {
    std::string as;                    ///< the recipe whose host it is
    Duration layer{}, expert_layer{};  ///< of the host: for a layer's forward, for routing
    Duration step{};                   ///< emulated so
    double far = 1;                    ///< the end of the range over it: Recipe::far of a launch so
    std::vector<Duration> waits{};     ///< for the host, of an emulated step's ranks in its slowest replica

    /// The far end of the range.
    Duration most() const;

    /// The rank that waits longest, the first of several. Pre: there are waits.
    std::size_t rank() const;
};

/// The setup as emulator::launched_as() has it launched kernel by kernel, with a store of its own. None: its recipe is
/// not open (emulator::is_open), an anchor holds its step, or its device is no GPU.
[[nodiscard]] std::optional<emulator::Setup> waiting_for_host(const emulator::Setup& setup);

/// The far end of a step that takes `near` in graphs and `eager` under `waiting` = waiting_for_host(). None, as far as
/// anyone can tell the two apart: the host adds less than tuned runs are off by, or the range is less than a tenth.
[[nodiscard]] std::optional<HostBound> host_bound_of(const emulator::Setup& waiting, Duration near, Duration eager);

}  // namespace pipeweaver::planner
