// GPUs in the order of arrival, each job what it asks for, and what jobs give back at the end of a loan.
#pragma once

#include "capacity/jobs/queue_state.hpp"

#include <cstdint>
#include <vector>

namespace pipeweaver::capacity {

/// As targets_of() (queue_rules.hpp) of a rule without `together`.
[[nodiscard]] std::vector<std::int64_t> targets_in_turn(const QueueSetting& setting, const QueueState& state,
                                                        bool with_loans);

/// What jobs that run have when the GPUs have become fewer, for the least weighted time lost until the next loan.
[[nodiscard]] std::vector<std::int64_t> reclaimed(const QueueSetting& setting, const QueueState& state,
                                                  std::int64_t capacity);

/// Weighted time that a job loses until the next loan if it has `gpus` from now on: by the next loan it has done less,
/// and then it restarts. 0 for what it has. Pre: it runs, on as many GPUs at least.
[[nodiscard]] Wide reclaim_cost(const QueueSetting& setting, const QueueState& state, const JobState& job,
                                std::int64_t gpus);

}  // namespace pipeweaver::capacity
