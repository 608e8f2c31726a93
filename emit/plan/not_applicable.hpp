// The policies that do not apply, for a person: alike ones in one line.
#pragma once

#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/stage_plan.hpp"

#include <string>
#include <vector>

namespace pipeweaver::emit {

/// "1f1b on dip, megatron with 2 chunks: why", in the order in which policies were tried.
[[nodiscard]] std::vector<std::string> not_applicable(const std::vector<planner::NotApplicable>& pairs);

/// "1f1b: why".
[[nodiscard]] std::vector<std::string> not_applicable(const std::vector<planner::StagePolicy>& policies);

/// The lines under a heading; empty without lines.
[[nodiscard]] std::string not_applicable_text(const std::vector<std::string>& lines);

}  // namespace pipeweaver::emit
