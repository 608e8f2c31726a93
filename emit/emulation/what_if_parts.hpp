// Gradients in fewer bytes, as an emulation says what they would change.
#pragma once

#include "pipeweaver/planner/gradient_choice.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace pipeweaver::emit {

/// The `gradients` of emulation.json.
[[nodiscard]] nlohmann::ordered_json gradients_json(const planner::GradientReport& report);

/// What each format makes of the step, then the buckets that are worth it.
[[nodiscard]] std::string gradients_text(const planner::GradientReport& report);

}  // namespace pipeweaver::emit
