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

/// The rule with which the jobs at hand end with the least weighted time, if no other arrives.
[[nodiscard]] QueueRule best_rule(const QueueSetting& setting, const QueueState& state);

}  // namespace pipeweaver::capacity
