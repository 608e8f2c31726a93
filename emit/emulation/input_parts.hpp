// What GPUs wait for samples, as emulations and plans say it.
#pragma once

#include "pipeweaver/planner/input.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace pipeweaver::emit {

/// The `input` of plan.json and emulation.json.
[[nodiscard]] nlohmann::ordered_json input_json(const planner::Input& input);

/// Sentences: what the loader adds to the step, which stage decides and what is enough; then what was left out.
[[nodiscard]] std::vector<std::string> lines_of(const planner::Input& input);

}  // namespace pipeweaver::emit
