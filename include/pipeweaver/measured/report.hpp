// A comparison for a person and for a program.
#pragma once

#include "pipeweaver/measured/comparison.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace pipeweaver::measured {

/// Tables of at most 100 columns: the step and what its difference is made of, groups, ranks with their clocks, the ten
/// tasks that differ most, slow ranks.
[[nodiscard]] std::string comparison_text(const Planned& planned, const Comparison& comparison);

/// The answer of `replay --measured --json` ("pipeweaver-comparison/1", docs/formats.md).
[[nodiscard]] nlohmann::ordered_json comparison_json(const Planned& planned, const Comparison& comparison);

}  // namespace pipeweaver::measured
