// The layouts (tp x pp x dp) that a model may run in on a cluster, as they are asked for and as they were judged.
#pragma once

#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

struct LayoutRequest {
    const emulator::Setup* setup = nullptr;  ///< its own layout does not count
    std::optional<std::int64_t> tp, pp, dp;  ///< what is fixed; none: to be chosen
    std::int64_t cp = 1;                     ///< of every layout
    std::optional<std::int64_t> ep;          ///< of every layout; none: emulator::default_ep
    emulator::ContextParallel context = emulator::ContextParallel::all_to_all;
    std::vector<workloads::Microbatch> microbatches;
    bool for_each_replica = false;  ///< every replica runs so many microbatches of these sizes; else they share them
    /// Then: those of so many replicas together, of which the layout that is chosen must hold the largest; empty: only
    /// `microbatches` must fit.
    std::function<std::vector<workloads::Microbatch>(std::int64_t replicas)> draw{};
};

/// A layout that fits, by the fastest pair of partition and policy that was tried.
struct LayoutTried {
    emulator::Layout layout;
    std::size_t microbatches = 0;  ///< that it was judged by, of all replicas; of more than 32 a replica, 32
    Duration step{};               ///< of the slowest replica (of the most loaded one, where a layout is slower than
                                   ///< the fastest anyway), with gradient reduction and optimizer
    std::string partition, policy;

    Duration per_microbatch() const { return step / static_cast<std::int64_t>(microbatches); }
};

/// Why layouts were not taken, and how many.
struct LayoutRefused {
    std::string why;
    std::size_t count = 0;
};

struct LayoutChoice {
    std::vector<LayoutTried> tried;      ///< fastest for each microbatch first, ties to the smaller tp, then pp
    std::vector<LayoutRefused> refused;  ///< in the order of the checks

    const emulator::Layout& layout() const { return tried.front().layout; }
};

}  // namespace pipeweaver::planner
