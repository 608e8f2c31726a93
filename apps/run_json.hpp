// run.json: what was measured while a command ran.
#pragma once

#include "pipeweaver/planner/plan_options.hpp"

#include <nlohmann/json_fwd.hpp>

namespace pipeweaver::apps {

/// Seconds, threads, budget, rounds, and the name of this machine.
[[nodiscard]] nlohmann::ordered_json run_json(const planner::SearchLimits& limits, double seconds);

}  // namespace pipeweaver::apps
