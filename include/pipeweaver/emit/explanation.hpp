// Why a rank waits, what a task waits for and what would shorten that, for a person and for a program.
#pragma once

#include "pipeweaver/schedule/explain.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace pipeweaver::emit {

/// Tables of at most 100 columns: what the rank does then, the chain back to the step's begin, what would shorten it;
/// where no rank and no task was asked about, the longest waits of each rank.
[[nodiscard]] std::string explanation_text(const schedule::Problem& problem, const schedule::Query& asked,
                                           const schedule::Explanation& all);

/// The answer of `explain --json` ("pipeweaver-schedule-explanation/1", docs/formats.md).
[[nodiscard]] nlohmann::ordered_json explanation_json(const schedule::Problem& problem, const schedule::Query& asked,
                                                      const schedule::Explanation& all);

}  // namespace pipeweaver::emit
