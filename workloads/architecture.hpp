// A network as JSON: what model files and the catalogue have in common.
#pragma once

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <nlohmann/json_fwd.hpp>

namespace pipeweaver::workloads {

/// Reads a network strictly: unknown keys, sizes out of range and contradictions are Error{input}.
[[nodiscard]] Architecture parse_architecture(const Json& json);

/// The inverse, keys in the order of the manual, defaults left out.
[[nodiscard]] nlohmann::ordered_json architecture_json(const Architecture& architecture);

}  // namespace pipeweaver::workloads
