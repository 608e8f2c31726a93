// What has to be done for a rung, in the order in which it is done.
#pragma once

#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/rung.hpp"

#include <string>
#include <vector>

namespace pipeweaver::emit {

/// "source megatron/megatron.sh in your launch script: ...", "feed assignment.json to a sampler", "reshard the
/// checkpoint to ...": a phrase each. Files are of the plan's folder.
[[nodiscard]] std::vector<std::string> rung_steps(const planner::Job& job, const planner::Ladder& ladder,
                                                  const planner::Rung& rung);

/// What else may be done, and what is not written and why: phrases that are no steps.
[[nodiscard]] std::vector<std::string> rung_hints(const planner::Job& job, const planner::Ladder& ladder,
                                                  const planner::Rung& rung);

/// The steps in one line, numbered where there are several, and the hints.
[[nodiscard]] std::string what_to_do(const planner::Job& job, const planner::Ladder& ladder, const planner::Rung& rung);

}  // namespace pipeweaver::emit
