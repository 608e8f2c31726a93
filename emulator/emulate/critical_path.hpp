// Which work decides when a step ends.
#pragma once

#include "emulator/emulate/step_times.hpp"
#include "pipeweaver/emulator/emulation.hpp"

#include <vector>

namespace pipeweaver::emulator {

/// What follows the last task of a rank.
struct RankEnd {
    std::int64_t tasks = 0;      ///< when its last task has ended
    std::int64_t gradients = 0;  ///< when its weights are there again, but for the optimizer
};

/// The path of tasks, transfers and what follows them that ends last, by kind of work; longest first. On the path
/// inside a task, waiting for another stream counts for that stream.
[[nodiscard]] std::vector<CriticalPart> critical_path(const ScheduledStep& step, const StepTimes& times,
                                                      const std::vector<RankEnd>& ends, Duration optimizer);

}  // namespace pipeweaver::emulator
