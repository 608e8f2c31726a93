// What the robust choice gave up and gained, in words and for programs.
#pragma once

#include "pipeweaver/planner/robust_choice.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace pipeweaver::emit {

/// A sentence; empty if there was nothing to choose from.
[[nodiscard]] std::string choice_text(const planner::RobustChoice& choice);

/// The `choice` of plan.json.
[[nodiscard]] nlohmann::ordered_json choice_json(const planner::RobustChoice& choice);

}  // namespace pipeweaver::emit
