// Who gets how many GPUs at a moment: functions of the state alone.
#pragma once

#include "capacity/jobs/queue_state.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace pipeweaver::capacity {

/// How GPUs are given away from now on.
struct QueueRule {
    static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();

    bool with_loans = false;
    /// Nothing: in turn, each job what it asks for. Else so many jobs share the GPUs; the next may have what is left.
    std::optional<std::size_t> together;
};

/// GPUs of each job, as the state has them.
[[nodiscard]] std::vector<std::int64_t> targets_of(const QueueSetting& setting, const QueueState& state,
                                                   const QueueRule& rule);

/// What jobs that run have when the GPUs have become fewer, for the least weighted time lost until the next loan.
[[nodiscard]] std::vector<std::int64_t> reclaimed(const QueueSetting& setting, const QueueState& state,
                                                  std::int64_t capacity);

/// Weighted time that a job loses until the next loan if it has `gpus` from now on: by the next loan it has done less,
/// and then it restarts. 0 for what it has. Pre: it runs, on as many GPUs at least.
[[nodiscard]] Wide reclaim_cost(const QueueSetting& setting, const QueueState& state, const JobState& job,
                                std::int64_t gpus);

/// The rule with which the jobs at hand end with the least weighted time, if no other arrives.
[[nodiscard]] QueueRule best_rule(const QueueSetting& setting, const QueueState& state);

}  // namespace pipeweaver::capacity
