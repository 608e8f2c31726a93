// Small random graphs of kernels, a simulator of them that shares nothing with the library, and smaller ones that still
// fail.
#pragma once

#include "emulator/pricing/operator_graph.hpp"
#include "pipeweaver/base/random.hpp"

#include <functional>
#include <vector>

namespace pipeweaver::emulator::random_graphs {

/// Streams, inputs and outputs as given; up to `most` kernels, with waits, memory and now and then no duration.
OperatorGraph random_graph(Random& random, std::uint32_t streams, std::uint32_t inputs, std::uint32_t outputs,
                           std::uint32_t most = 12);

/// Times at random, of streams and then of inputs.
StreamState random_state(Random& random, std::size_t size);

/// What a person would do: step from event to event, start on every stream the next kernel as soon as all that it
/// waits for is there. The state behind the graph.
StreamState simulate(const OperatorGraph& graph, const StreamState& before);

/// Without kernel `left_out`: what waited for it waits for what it waited for, and for its stream's kernel before.
OperatorGraph without(const OperatorGraph& graph, std::size_t left_out);

/// The graph with as many kernels left out as possible so that `fails` still holds. Pre: fails(graph).
OperatorGraph shrunk(OperatorGraph graph, const std::function<bool(const OperatorGraph&)>& fails);

}  // namespace pipeweaver::emulator::random_graphs
