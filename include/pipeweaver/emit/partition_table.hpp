// What `pipeweaver partition` shows: the partition that was taken, and what else there was.
#pragma once

#include "pipeweaver/planner/partition_choice.hpp"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace pipeweaver::emit {

/// Shows the choice as text: candidates with time and memory, then the chunks of every rank as bars.
[[nodiscard]] std::string partition_table(const planner::Job& job, const planner::Batch& batch,
                                          const planner::PartitionChoice& choice);

/// Gives the choice as JSON for programs; times are in nanoseconds.
[[nodiscard]] nlohmann::ordered_json partition_answer(const planner::Job& job, const planner::Batch& batch,
                                                      const planner::PartitionChoice& choice);

/// Draws the chunks of the partition taken and of the best of every other kind to one scale, as an SVG file.
[[nodiscard]] std::string partition_picture(const planner::Job& job, const planner::Batch& batch,
                                            const planner::PartitionChoice& choice);

}  // namespace pipeweaver::emit
