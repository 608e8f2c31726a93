// A run of one's own beside its prediction: how far off it is, part by part, and what would explain the difference.
//
// Parts        of the path that decides the step; together they are the predicted step.
// Explained    a part alone explains the difference where it takes so many times as long. Longer parts make the step
//              longer by at least their own growth, so no larger factor is needed; where the run was faster, other
//              paths may decide, and a smaller factor may be.
// Support      of the predicted busy time: by class of operator and basis of its costs, the weakest basis first.
#pragma once

#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/planner/emulate.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::measured {

/// What was measured.
struct OwnRun {
    Duration step{};              ///< above 0
    std::optional<Bytes> memory;  ///< the peak of the fullest GPU, above 0; nothing: not measured
    emulator::MemoryKind memory_kind = emulator::MemoryKind::allocated;
};

/// A part of the predicted path, in nanoseconds, or of the predicted peak, in bytes.
struct OwnPart {
    std::string what;             ///< "compute", "tensor-parallel communication", ..., "weights", ...
    std::string module;           ///< empty where it belongs to none
    std::int64_t predicted = 0;   ///< above 0
    std::optional<double> times;  ///< so many times this much explains the difference alone; nothing: it cannot
};

/// Where the time of an average rank of the slowest replica goes; together the predicted step.
struct RankShare {
    std::string what;
    Duration time{};  ///< above 0
};

/// Busy time that rests on one basis.
struct Support {
    emulator::OperatorClass kind{};
    costdb::Basis basis{};
    double share = 0;  ///< of busy time, above 0
};

struct OwnRunReport {
    Duration predicted{}, measured{};
    std::vector<OwnPart> parts;    ///< longest first
    std::vector<RankShare> ranks;  ///< compute, what it waits for, bubble, gradients, optimizer; those that occur
    std::vector<Support> support;  ///< modelled first, exact last; of one basis the largest share first
    Bytes peak{};                  ///< predicted, of the kind that was measured, of the fullest GPU
    std::optional<Bytes> measured_peak;
    emulator::MemoryKind memory_kind = emulator::MemoryKind::allocated;
    std::vector<OwnPart> memory;  ///< of that GPU, largest first; without what its kind adds to what is allocated
};

/// predicted / measured - 1.
[[nodiscard]] double error_of(std::int64_t predicted, std::int64_t measured);

/// The run beside what `emulation` of `request` predicts.
[[nodiscard]] OwnRunReport own_run(const planner::EmulationRequest& request, const planner::Emulation& emulation,
                                   const OwnRun& measured);

}  // namespace pipeweaver::measured
