// What a recorded run says of its plan's costs: by which factor the work of each module was longer than planned.
//
// Model        a task's time = what no factor changes + sum over modules and directions of factor * planned part. Parts
//              come from the emulator: what a task grows by when that work takes twice as long. Recomputed forwards are
//              forward work of their module. Squares of the relative errors over all tasks are least, beside a weight
//              of a millionth that holds factors at 1 which no task tells apart.
// Measured     a task's time is the lower middle over the recorded steps; that of a slow rank (comparison.hpp) counts
//              without its factor.
// Limits       factors stay within 0.001 and 1000.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/measured/run.hpp"
#include "pipeweaver/planner/emulate.hpp"

#include <span>
#include <string>
#include <vector>

namespace pipeweaver::measured {

/// The planned part of each task that is work of a module in one direction.
struct Share {
    std::string module;
    bool backward = false;
    std::vector<Duration> of_task;

    Duration total() const;
};

/// All parts that some task has, by module in the model's order, forward first. Throws Error{input} where the plan is
/// not of the request's job, and as planner::emulate(). Pre: schedules are given, the request's setup has no what-if.
[[nodiscard]] std::vector<Share> shares_of(const planner::EmulationRequest& request, const Planned& planned,
                                           const Executor& execute);

/// The factor of each share.
[[nodiscard]] std::vector<double> fit_factors(const Planned& planned, const Run& run, std::span<const Share> shares);

}  // namespace pipeweaver::measured
