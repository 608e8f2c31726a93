// One rank's nodes, and what they may have waited for.
#pragma once

#include "pipeweaver/traces/graph.hpp"
#include "traces/recording.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::traces {

/// A node with what it may have waited for, not settled yet: lags are the least.
struct Draft {
    Node node;
    std::vector<Wait> waits;

    std::int64_t end_ns() const { return node.start_ns + node.duration_ns; }
};

/// Nodes of a work: where it begins, and where it ends; of a collective that met they differ.
struct WorkNodes {
    std::uint32_t begin = no_node, end = no_node;
};

/// Adds a rank's nodes to `drafts`, its times later by `offset_ns`. `met_at` says of each work when the last rank came,
/// by the aligned clock; none: it met nobody. Returns the nodes of its works.
[[nodiscard]] std::vector<WorkNodes> add_rank(std::vector<Draft>& drafts, const RankRecord& record, std::uint32_t rank,
                                              std::int64_t offset_ns,
                                              std::span<const std::optional<std::int64_t>> met_at, bool is_emulated);

}  // namespace pipeweaver::traces
