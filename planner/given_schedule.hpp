// Schedules from a plan's folder, matched to the step that they were made for.
#pragma once

#include "pipeweaver/emulator/split.hpp"
#include "planner/comparison.hpp"

#include <filesystem>
#include <vector>

namespace pipeweaver::planner {

/// A replica's schedule.
struct GivenSchedule {
    partition::Partition partition;  ///< whose problem it is of
    emulator::SplitChoice split;     ///< which backwards it splits
    schedule::Schedule schedule;
};

/// Reads `path`, a plan folder with replica-NNN/, or the solution file of the only replica, its problem file beside
/// it. Throws Error{input} where that is of another model, batch, layout or costs than the request, Error{io}.
[[nodiscard]] std::vector<GivenSchedule> read_given(const std::filesystem::path& path, const Request& request,
                                                    const costdb::CostDatabase& costs, const Parts& parts);

}  // namespace pipeweaver::planner
