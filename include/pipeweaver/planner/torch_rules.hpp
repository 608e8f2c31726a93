// What PyTorch's pipeline runtime can run (torch.distributed.pipelining, observed on 2.13.0), as a check and as rules
// for the search.
#pragma once

#include "pipeweaver/schedule/problem.hpp"
#include "pipeweaver/search/search.hpp"

#include <optional>
#include <string>

namespace pipeweaver::planner {

/// The first rule that the problem breaks, with the task, or nothing: one chain of stages 0 ... S-1; every stage has
/// exactly one F and one B (or I and W) for each of microbatches 0 ... M-1; edges only F(s) -> F(s+1), B(s+1) -> B(s),
/// F(s) -> B(s), I -> W; every rank has a stage; one mode for each pair.
[[nodiscard]] std::optional<std::string> not_expressible_in_torch(const schedule::Problem& problem);

/// What a schedule must keep: the last stage's forwards run in microbatch order, or losses are paired wrongly.
/// Pre: not_expressible_in_torch() has nothing to say.
[[nodiscard]] search::Rules torch_rules(const schedule::Problem& problem);

/// The rule that this order breaks, with the task, or nothing.
[[nodiscard]] std::optional<std::string> breaks_torch_rules(const schedule::Problem& problem,
                                                            const schedule::Schedule& schedule);

}  // namespace pipeweaver::planner
