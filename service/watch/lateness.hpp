// Why a plan was late: told by when what happened to its step.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "service/workers.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace pipeweaver::service {

/// What happened to a step, in this order.
struct Course {
    TimePoint submitted;
    std::optional<TimePoint> moved;  ///< a collect brought its deadline nearer
    TimePoint policy, drafted;       ///< its plan by policy was begun, and was there or found to be impossible
    std::size_t before = 0;          ///< steps that had their turn since, before this one
    TimePoint turn;                  ///< its search began or, where the time was over, the plan by policy was taken
    TimePoint found, made,
        settled;  ///< its plan was found, put together, and stored or found to be impossible to store

    TimePoint deadline;
    Duration reserve{};     ///< its search was told to end so long before the deadline
    bool has_draft = true;  ///< a policy applied
    bool searched = false;  ///< its plan is its search's
    bool stored = true;
};

/// Says in a line why a step's plan came after its deadline: what had no chance from the beginning or, of what took
/// longer than it should, what took most. Empty: it was in time.
[[nodiscard]] std::string why_late(const Course& course);

}  // namespace pipeweaver::service
