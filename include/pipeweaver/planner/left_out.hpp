// What a budget or a signal left out of a plan.
#pragma once

#include "pipeweaver/planner/plan_parts.hpp"

#include <string>
#include <vector>

namespace pipeweaver::planner {

struct LeftOut {
    std::string what;  ///< a phrase
    double part = 0;   ///< of a whole plan's time, about
};

/// In the order of a plan's work; of a plan that was interrupted that comes first.
[[nodiscard]] std::vector<LeftOut> left_out(const Plan& plan);

}  // namespace pipeweaver::planner
