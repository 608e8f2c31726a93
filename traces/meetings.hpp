// Collectives of several ranks matched, and the ranks' clocks aligned by their ends.
//
// Matching     within a process group by the number that PyTorch gives each collective, else by their order; kernels
//              without a group by their kind and order. A send and its receive meet likewise, where the trace says
//              the other rank and both ranks have as many; else they are left as they were recorded.
// Clocks       members of an all-reduce, all-gather, reduce-scatter or all-to-all end together: the offset of two ranks
//              is the middle difference of these ends. What it varies by is told (half of the range of nine of ten).
//              Ranks that share none go by their sends and receives, then by passes: what is taken was made before,
//              either way, and the offset is the middle of what that leaves (as in measured/clocks.hpp).
#pragma once

#include "traces/recording.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pipeweaver::traces {

struct Member {
    std::size_t rank = 0;    ///< place in Recording::ranks
    std::uint32_t work = 0;  ///< in RankRecord::works
};

/// Two or more, by rank.
using Meeting = std::vector<Member>;

/// Throws Error{input} where the ranks' collectives differ in kind, size or number, or one of a group is missing.
[[nodiscard]] std::vector<Meeting> meetings_of(const Recording& recording);

struct ClockOffset {
    std::int64_t offset_ns = 0;       ///< is added to the rank's times
    std::int64_t uncertainty_ns = 0;  ///< beside the first rank
};

struct Passage;

/// By rank. Throws Error{input} for a rank that meets none, and where ends differ so much that the step cannot be told.
[[nodiscard]] std::vector<ClockOffset> aligned(const Recording& recording, const std::vector<Meeting>& meetings,
                                               const std::vector<Passage>& passages);

}  // namespace pipeweaver::traces
