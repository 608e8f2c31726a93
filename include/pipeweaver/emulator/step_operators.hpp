// Which operators a step asks the cost database for, and how often: what is worth measuring.
//
// What build_step() prices, from the same lists: forwards and whole backwards of all units on all stages, transfers
// between ranks, the collectives of gradients and the optimizer. Recomputation runs forwards again and a split backward
// the parts of a whole one: neither asks for other operators.
#pragma once

#include "pipeweaver/emulator/step_problem.hpp"

#include <functional>

namespace pipeweaver::emulator {

/// Is told an operator and how often it runs; equal ones may come several times.
using OperatorVisitor = std::function<void(const Operator&, std::int64_t times)>;

/// Visits the operators of a step. Pre: `step` = build_step(input).
void visit_operators(const StepInput& input, const StepProblem& step, const OperatorVisitor& visit);

}  // namespace pipeweaver::emulator
