// From which length on sparse attention and layouts of context parallelism pay, as text and JSON.
#pragma once

#include "pipeweaver/planner/long_context.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace pipeweaver::emit {

[[nodiscard]] std::string long_context_text(const planner::LongContext& answer);
[[nodiscard]] nlohmann::ordered_json long_context_json(const planner::LongContext& answer);

}  // namespace pipeweaver::emit
