// Where busy time goes and what its costs rest on, in words and for programs.
#pragma once

#include "pipeweaver/planner/plan.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace pipeweaver::emit {

/// Two lines.
[[nodiscard]] std::string shares_text(const planner::TimeShares& shares);

/// The `share_of_time` of plan.json and emulation.json.
[[nodiscard]] nlohmann::ordered_json shares_json(const planner::TimeShares& shares);

}  // namespace pipeweaver::emit
