// What other formats of products would change, as text and JSON.
#pragma once

#include "pipeweaver/planner/precision.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace pipeweaver::emit {

[[nodiscard]] std::string precision_text(const planner::PrecisionAnswer& answer);
[[nodiscard]] nlohmann::ordered_json precision_json(const planner::PrecisionAnswer& answer);

}  // namespace pipeweaver::emit
