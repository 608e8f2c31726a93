// Which layout (tp x pp x dp) a model runs fastest in on a cluster: every one that the GPUs and the model allow is
// emulated quickly, by policies without a search.
//
// Determinism  A function of the request: not of the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <optional>
#include <string>
#include <string_view>
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

/// Tries every tp x pp x dp = GPUs / cp with what is fixed: tp inside a node, dividing heads and feed-forward widths; a
/// layer of every module for each rank; a microbatch for each replica. Partitions dip and balanced, policies
/// dual-queue, 1f1b and gpipe. Throws Error{limit} where nothing fits: which layout comes closest, its rank, what is
/// short, and what would fit; Error{input} where no layout agrees with the GPUs and the model. Pre: microbatches.
[[nodiscard]] LayoutChoice choose_layout(const LayoutRequest& request, const Executor& execute);

/// What would fit where the request's layout does not: another layout on the same GPUs if there is one, else the fewest
/// GPUs (doubling up to 64 times as many) on which there is. A part of a sentence.
[[nodiscard]] std::string what_would_fit(const LayoutRequest& request, const Executor& execute);

}  // namespace pipeweaver::planner
