// The graph of a recorded step replayed, as it was or changed: how long it takes, what decides that, what may be fused.
//
// Units        Nanoseconds, from the first start.
// Determinism  functions of their arguments.
#pragma once

#include "pipeweaver/traces/graph.hpp"
#include "pipeweaver/traces/kinds.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pipeweaver::traces {

struct Changes {
    Factors factors{};
    std::vector<std::int64_t> longer_ns{};  ///< by node: what it takes more; empty: nothing
    /// By node: it is one kernel with the one before it in its stream: neither call nor gap nor launch of its own; what
    /// both did is still done. Empty: none.
    std::vector<bool> fused{};
};

struct Replayed {
    std::vector<std::int64_t> start_ns, end_ns;  ///< by node
    std::vector<std::uint32_t> after;            ///< by node: in Graph::waits what it waited for last; no_node: nothing
    std::int64_t span_ns = 0;                    ///< to the last end
};

/// Unchanged it is what was recorded, to the nanosecond. Pre: vectors of `changes` are empty or have all nodes. Time
/// O(nodes + waits).
[[nodiscard]] Replayed replay(const Graph& graph, const Changes& changes = {});

/// By node: by how much it may end later while the step does not.
[[nodiscard]] std::vector<std::int64_t> slack_of(const Graph& graph, const Replayed& replayed);

/// The waits that decide the span. Communication among them is exposed.
struct CriticalPath {
    std::array<std::int64_t, kinds> of_kind{};  ///< adds up to the span
    std::vector<std::int64_t> of_rank;          ///< its work (is_work()), by place in Graph::ranks
    std::int64_t kept_ns = 0;  ///< of an unchanged step: gaps that no dependency explains, kept as they were recorded
};
[[nodiscard]] CriticalPath critical_path(const Graph& graph, const Replayed& replayed);

/// Two kernels, one right behind the other in a stream, wherever they stand so.
struct Fusion {
    std::uint32_t first = 0, second = 0;  ///< in Graph::names
    std::int64_t count = 0;
    std::int64_t span_ns = 0;  ///< of the step with this and all fusions before it
};

/// Memory-bound neighbours, the pair that gains most first, then the next beside it, and so on while it gains: `most`
/// of them. Calls and gaps are saved; traffic that a fused kernel saves is not in a trace, and not counted.
[[nodiscard]] std::vector<Fusion> fusions_of(const Graph& graph, std::size_t most);

}  // namespace pipeweaver::traces
