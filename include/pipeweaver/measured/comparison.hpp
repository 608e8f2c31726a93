// A recorded run beside its plan: how far off, of what, and where it was lost.
//
// Step         From the first pass's start to the last pass's end over all ranks, by aligned clocks. Of several
//              recorded steps the one of the middle length is told (the lower of two); factors are over all steps.
// Run or wait  The plan's schedule is replayed with the passes' measured durations and the plan's transfers. By what
//              that is longer than the plan, passes made the step longer (run); by what the measured step is longer
//              than that, transfers and waiting did (wait). Both are the difference, to the nanosecond.
// Groups       Passes of one kind through stages with the same modules. A group's part of `run` is what the replayed
//              step grows by when its measured durations take the place of the planned ones, after those of the
//              groups before it (the largest change first); together they are `run`.
// Slow ranks   by their factors beside their peers (drift.hpp), over all steps. A rank that shares no group with
//              another has none: it cannot be told from its modules.
// Determinism  equal arguments, equal answer.
#pragma once

#include "pipeweaver/measured/run.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::measured {

struct GroupError {
    std::string modules;  ///< "vit+llm": all that a stage holds
    char kind = 'F';
    std::size_t passes = 0;
    Duration planned{}, measured{};  ///< of all its passes together
    Duration on_step{};              ///< its part of Comparison::run
};

struct RankTimes {
    Duration planned_busy{}, measured_busy{};
    Duration planned_wait{}, measured_wait{};  ///< the step less the busy time
    std::optional<double> factor;              ///< beside its peers, against the plan; over all steps
    bool slow = false;                         ///< the factor is slow_factor or more
};

struct TaskError {
    std::size_t task = 0;
    Duration planned{}, measured{};
};

struct Comparison {
    std::size_t steps = 0, step = 0;  ///< recorded, and which is told
    Duration planned{}, measured{};   ///< the step
    Duration run{}, wait{};           ///< measured - planned = run + wait
    Clocks clocks;
    std::vector<GroupError> groups;  ///< in the order of their parts
    std::vector<RankTimes> ranks;
    std::vector<TaskError> tasks;  ///< all, those that differ most first
};

/// From where a rank is called slow.
inline constexpr double slow_factor = 1.05;

/// Throws Error{input} where messages contradict each other by more than a hundredth of the step: the files are not of
/// one run.
[[nodiscard]] Comparison compare(const Planned& planned, const Run& run);

/// The factor of each rank as above, over all steps; `groups` names the group of each task.
[[nodiscard]] std::vector<std::optional<double>> rank_factors(const Planned& planned, const Run& run);

}  // namespace pipeweaver::measured
