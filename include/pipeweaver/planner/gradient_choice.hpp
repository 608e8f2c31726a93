// Which buckets of gradients to compress, and how: only where a step is shorter for it.
//
// Method       A greedy walk along each rank's buckets in the order of their exchanges that keeps the best few
//              beginnings, each judged with all that follows in one format; of several formats also the walk
//              of each alone; from the best of these, single changes as long as one helps. What does not shorten the
//              step, or does so no less in more bytes, is taken back.
// Determinism  a function of the arguments.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/emulator/gradient_traffic.hpp"

#include <cstdint>
#include <vector>

namespace pipeweaver::planner {

struct GradientChoice {
    std::vector<std::vector<std::uint8_t>> ways;  ///< per rank, per bucket: index into GradientBucket::ways
    std::vector<Duration> before{}, after{};      ///< per rank: when it is through, as it is and so

    /// Of all ranks.
    Duration makespan_before() const;
    Duration makespan_after() const;
};

/// Of each bucket the first `allowed` ways or, with `alone`, the first and that one.
[[nodiscard]] GradientChoice choose_gradients(const std::vector<emulator::RankGradients>& ranks, std::uint8_t allowed);
[[nodiscard]] GradientChoice choose_gradients_alone(const std::vector<emulator::RankGradients>& ranks,
                                                    std::uint8_t alone);

/// What gradients that travel in other formats make of a replica's step.
struct GradientReport {
    std::size_t replica = 0;
    std::vector<emulator::GradientFormat> formats;  ///< that its gradients can take; the first is as_is
    std::vector<emulator::RankGradients> ranks;
    std::vector<GradientChoice> alone;  ///< per format behind the first: where it alone may be taken
    GradientChoice chosen;              ///< of all
};

}  // namespace pipeweaver::planner
