// A recorded step as one graph: what waited for what, over streams, the host's threads and ranks.
//
// Kernels      wait for their launch (from its beginning on), for what stands before them in their stream, and for
//              events of other streams: as cuda_sync events tell, else what the launching thread last launched
//              elsewhere.
// Host         a call follows the one before on its thread, after what the host did in between. After a gap of 100 us
//              or more it follows the last call that ended on another thread (Lumos, arXiv 2504.09307). Synchronising
//              calls, and copies that return when they are done, wait for the GPU.
// Collectives  begin with the last of their ranks, and take from there on what they took (dPRO, arXiv 2205.02473).
// Gaps         what a start cannot be explained by is kept behind the last thing that it waited for; so the replay of
//              what was recorded is exact, and CriticalPath::kept_ns says how much of it rests on that.
// Own traces   of emulated steps: work follows what ended just then on another stream or rank, and arrows.
// Units        Nanoseconds, from the first start; clocks are aligned.
#pragma once

#include "pipeweaver/traces/kinds.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::traces {

constexpr std::uint32_t no_node = std::numeric_limits<std::uint32_t>::max();

struct Wait {
    std::uint32_t on = 0;     ///< a node in front of the one that waits
    bool from_start = false;  ///< for its start, else its end
    Kind kind = Kind::idle;   ///< of the time that passes then
    std::int64_t lag_ns = 0;
    std::int64_t kept_ns = 0;  ///< of it, what nothing explains, and which is no `idle` time
};

struct Node {
    std::int64_t start_ns = 0, duration_ns = 0;
    std::uint32_t rank = 0;  ///< place in Graph::ranks
    std::uint32_t name = 0;  ///< in Graph::names
    Kind kind = Kind::idle;
    std::uint32_t before = no_node;  ///< what stands before it in its stream
    std::uint32_t call = no_node;    ///< that launched it
};

struct GraphRank {
    std::int64_t rank = 0;
    std::string file;
    std::int64_t offset_ns = 0, uncertainty_ns = 0;  ///< of its clock, beside the first rank's
    std::int64_t work_ns = 0, communication_ns = 0;
    std::int64_t waits_ns = 0;         ///< for the last rank of its collectives
    std::int64_t meetings = 0;         ///< its collectives that met
    std::int64_t last = 0;             ///< of them it came last to so many
    std::int64_t kept_waiting_ns = 0;  ///< by which it was later than the one before it
};

struct Graph {
    std::vector<std::string> names;
    std::vector<GraphRank> ranks;
    std::vector<Node> nodes;                ///< in an order in which each is behind what it waits for
    std::vector<std::uint32_t> first_wait;  ///< by node, and one more; a node that waits for nothing starts when it did
    std::vector<Wait> waits;
    std::int64_t meetings = 0;   ///< collectives of which all ranks are there
    std::int64_t unmatched = 0;  ///< kernels of communication that are left as they were recorded
    std::int64_t span_ns = 0;    ///< as recorded: from the first start to the last end
    bool is_emulated = false;
    std::int64_t world = 0;  ///< ranks of the run, where the traces say so

    std::span<const Wait> waits_of(std::size_t node) const {
        return std::span(waits).subspan(first_wait[node], first_wait[node + 1] - first_wait[node]);
    }
    /// Places by rank.
    std::map<std::int64_t, std::size_t> places() const;
};

/// Reads the traces of one run, one file a rank, or one of an emulated step. Throws Error{input} for what is no trace,
/// ranks that are missing or twice, traces of different runs, clocks that cannot be aligned, events of more than an
/// hour and steps of more than 100; Error{io}.
[[nodiscard]] Graph read_graph(std::span<const std::string> files);

}  // namespace pipeweaver::traces
