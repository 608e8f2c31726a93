// Sessions and plans as JSON, as routes and events show them.
#pragma once

#include "service/planning.hpp"

#include <nlohmann/json_fwd.hpp>

namespace pipeweaver::service {

[[nodiscard]] nlohmann::ordered_json session_json(const SessionView& view);

/// How a plan was found.
[[nodiscard]] nlohmann::ordered_json found_json(const StoredPlan& plan);

}  // namespace pipeweaver::service
