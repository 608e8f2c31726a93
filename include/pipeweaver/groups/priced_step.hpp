// A step on groups of GPUs with what its passes cost and the order that they run in, to be replayed under other costs.
//
// Replicas     The slowest of each group in every round, as allocation.hpp has it: one pipeline stands for all.
// Costs        Of a stage's passes those of its largest microbatch say of what they are made, operator class by class;
//              a round's passes are made of the same, as long as they last.
#pragma once

#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/groups/plan.hpp"
#include "pipeweaver/schedule/solution.hpp"

namespace pipeweaver::groups {

struct PricedStep {
    emulator::StepProblem step;   ///< problem_of(), with costs and mixes; tails end with the optimizer
    schedule::Schedule schedule;  ///< 1F1B as allocation.hpp has it
};

/// Pre: `placing` was made by on_own_gpus() of the request, or with its groups' layouts asked for.
[[nodiscard]] PricedStep priced_step(const Request& request, const Placing& placing);

}  // namespace pipeweaver::groups
