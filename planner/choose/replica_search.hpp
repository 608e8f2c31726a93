// The searches of all replicas of a plan, within one share of the budget.
#pragma once

#include "planner/choose/selection.hpp"

namespace pipeweaver::planner {

/// search_in() of partition `p` of every replica, in a share of the budget that they have equal parts of. Where replicas
/// are more than threads they are searched side by side, each on one thread; no result depends on that.
void search_replicas(Comparison& compared, std::size_t p, const Request& request, const ChoiceRule& rule,
                     const Executor& execute, const Allowance& allowance, double share, const MoreStarts& more = {});

}  // namespace pipeweaver::planner
