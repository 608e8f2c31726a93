// How good a schedule is beside others of its problem: the one rule by which one of several is taken.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <compare>
#include <span>

namespace pipeweaver::search {

/// The smaller time, then the smaller peak. Of equal ones a caller keeps the one that it met first.
struct Standing {
    Duration time{};  ///< makespan, or a step with what follows it
    double peak = 0;  ///< largest_peak()

    friend auto operator<=>(const Standing&, const Standing&) = default;
};

/// The largest peak of a rank as a fraction of its capacity; where a rank has no capacity, the largest peak in bytes.
[[nodiscard]] double largest_peak(const schedule::Problem& problem, std::span<const Bytes> peak);
[[nodiscard]] double largest_peak(const schedule::Problem& problem, const schedule::Replay& replay);

/// Pre: `replay` is of the problem's ranks.
[[nodiscard]] Standing standing_of(const schedule::Problem& problem, const schedule::Replay& replay);

}  // namespace pipeweaver::search
