// What was asked, for programs: what the answers of several commands have in common.
#pragma once

#include "pipeweaver/planner/plan.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>

namespace pipeweaver::emit {

/// A user's database; null: the embedded one alone.
[[nodiscard]] nlohmann::ordered_json costs_json(const std::optional<planner::CostFile>& costs);

/// How a model is cut: chains with their stages, numbered through all of them.
[[nodiscard]] nlohmann::ordered_json partition_json(const partition::Partition& partition,
                                                    const workloads::Model& model);

}  // namespace pipeweaver::emit
