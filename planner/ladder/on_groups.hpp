// The rung of modules on GPUs of their own.
#pragma once

#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/groups/plan.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/rung.hpp"
#include "planner/ladder/worth.hpp"

#include <memory>
#include <optional>

namespace pipeweaver::planner {

struct OnGroups {
    Rung rung;
    std::shared_ptr<const emulator::Setup> setup{};
    groups::Request asked{};  ///< of that setup
    std::shared_ptr<const groups::Placing> placing{};
};

/// The best split of the job's GPUs to groups of its modules, by `groups`, whose step its command prints. Modules
/// without work share the backbone's group. Few microbatches are priced to find the split, as many as by the command
/// for its step; of a target with grids the best that they say (ask_for_launched()). None: the model has one module at
/// work, or others than grids are for, nothing fits, or options ask for what that command has not.
[[nodiscard]] std::optional<OnGroups> on_groups(const Request& request);

/// One pipeline, of the slowest replicas. Its tails end with the optimizer.
[[nodiscard]] RungSchedules schedules_of(const OnGroups& found);

}  // namespace pipeweaver::planner
