// Exact integer cuts: how many layers of a row each stage of a chain gets, so that the fullest rank has least to do.
//
// Wanted       in this order: the largest load of a rank, then the longest stage as small as can be; of such cuts the
//              one whose stages, from the first on, each end nearest to their even part of the row's time, of two ends
//              as near the later. Every stage has a layer, every rank fits its memory.
// Method       load and stage are found by halves, between a bound and the best cut known. Whether limits can be met is
//              asked of a depth-first search over the ends of stages. It remembers what failed by stage, layer and what
//              ranks with stages on both sides have left: with one chunk a rank by stage and layer, the dynamic
//              program. It goes on only where what is left could fit by time and by count. The count is exact for
//              layers alike but for the first and the last (embedding, head): there the search never turns back.
// Limit        with several kinds of layers and several chunks a rank the question is one of packing. A search ends
//              after `most_states` states, and what it did not find counts as impossible; a few such, and the best cut
//              known is taken. `proven` is false then. Rows of up to 12 layers never get there: they have as many
//              states as 11 places have ways to cut or not.
// Units        time in any whole unit, loads in the same; memory in bytes.
// Threads      any number of calls at once; the answer depends on the arguments alone.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pipeweaver::partition {

/// A layer with what stands before it and after it (embedding, head, projector).
struct RowLayer {
    std::int64_t time = 0;  ///< forward and backward
    Bytes always;           ///< weights, gradients, optimizer state
    Bytes held;             ///< by one pass
};

/// A rank without the row.
struct RowRank {
    std::int64_t load = 0;  ///< time of what it has besides
    Bytes room;             ///< what is left for the row's layers
};

/// A row of layers for ranks.size() * chunks stages; stage s is on rank s mod ranks.size().
struct Row {
    std::vector<RowLayer> layers;
    std::vector<RowRank> ranks;
    std::int64_t chunks = 1;           ///< of a rank
    std::vector<std::int64_t> passes;  ///< held at the same time, per stage; empty: one
};

/// A cut, and what it leaves short.
struct ExactCut {
    std::vector<std::int64_t> counts;  ///< layers, per stage
    std::int64_t largest_load = 0;     ///< of a rank, with what it has besides
    std::int64_t longest_stage = 0;
    bool proven = true;  ///< no cut is better: no search met its limit

    // Where no cut fits, `counts` comes nearest: so much more room on every rank is the least that would do.
    std::size_t rank = 0;  ///< the one that is furthest from fitting
    Bytes short_by;        ///< 0: it fits
    Bytes always, held;    ///< what the layers of `rank` take: what sharing state or fewer passes would change

    bool fits() const { return short_by == Bytes{}; }
};

/// States that one search goes through at most, with several chunks a rank.
constexpr std::size_t most_states = 2048;

/// The cut of `row`. Pre: ranks, chunks >= 1, as many layers as stages or more, times and bytes >= 0, passes for every
/// stage or none; the sum of the times, times the stages, is below 2^62.
/// Time: O(stages * layers * (stages + layers)) for each of about 60 searches at worst; 128 stages take milliseconds.
[[nodiscard]] ExactCut exact_cut(const Row& row);

}  // namespace pipeweaver::partition
