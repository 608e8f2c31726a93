// Operators of a pass as kernels on a GPU's streams, and what the replay of a pass tells.
#pragma once

#include "emulator/pricing/operator_graph.hpp"
#include "pipeweaver/emulator/pass_cost.hpp"
#include "pipeweaver/emulator/recipe.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace pipeweaver::emulator {

/// A list of operators as a graph with two inputs and outputs: when what is in front of it has ended, and when that
/// began. What is fetched ahead (weights, activations from the host) waits for the latter alone.
struct ListGraph {
    OperatorGraph graph;
    std::vector<std::uint32_t> operator_of;  ///< per kernel; `no_operator`: a join
    static constexpr std::uint32_t no_operator = UINT32_MAX;
};

/// The first kernel takes `acquire`, the last gives `release` back. With Recipe::launch every kernel waits for one of
/// that length on Stream::host. Pre: one duration per operator, at least one operator.
[[nodiscard]] ListGraph list_graph(std::span<const Operator> operators, std::span<const Duration> durations,
                                   const Recipe& recipe, Bytes acquire = {}, Bytes release = {});

/// A graph without kernels that lists can be appended to.
[[nodiscard]] OperatorGraph empty_pass();

/// All pieces of a pass in a row.
[[nodiscard]] OperatorGraph pass_graph(const std::vector<PassPiece>& pieces, const Recipe& recipe);

/// Whether a pass is the sum of its lists: nothing of a list runs on beside the next one.
[[nodiscard]] bool is_closed(const std::vector<PassPiece>& pieces, const Recipe& recipe);

/// Of the time from `begin` to `end` in which the graph's kernels ran, what compute waited for: at any time that it is
/// idle, the first stream that is not counts. Pre: ends[i] of kernel i; some stream is busy at any time.
[[nodiscard]] std::array<Duration, streams> exposed_between(const OperatorGraph& graph,
                                                            std::span<const std::int64_t> ends, std::int64_t begin,
                                                            std::int64_t end);

/// Sets `time` and `exposed` to what a replay of the graph from free streams gives.
void set_times(const OperatorGraph& graph, PassCost& cost);

}  // namespace pipeweaver::emulator
