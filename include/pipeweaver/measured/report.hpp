// A comparison and a run of one's own for a person and for a program.
#pragma once

#include "pipeweaver/measured/comparison.hpp"
#include "pipeweaver/measured/own_run.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace pipeweaver::measured {

/// Tables of at most 100 columns: the step and what its difference is made of, groups, ranks with their clocks, the ten
/// tasks that differ most, slow ranks.
[[nodiscard]] std::string comparison_text(const Planned& planned, const Comparison& comparison);

/// The answer of `replay --measured --json` ("pipeweaver-comparison/1", docs/formats.md).
[[nodiscard]] nlohmann::ordered_json comparison_json(const Planned& planned, const Comparison& comparison);

/// Tables of a run of one's own beside its prediction, and lines with what was `assumed`.
[[nodiscard]] std::string own_run_text(const OwnRunReport& report, const std::vector<std::string>& assumed);

/// The answer of `validate --measured --json` ("pipeweaver-own-run/1", docs/formats.md).
[[nodiscard]] nlohmann::ordered_json own_run_json(const OwnRunReport& report, const std::vector<std::string>& assumed);

}  // namespace pipeweaver::measured
