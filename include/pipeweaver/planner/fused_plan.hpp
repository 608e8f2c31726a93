// Two models that are trained on the same ranks at once, in opposite directions (schedule/fuse.hpp): one schedule of
// both, beside one model after the other.
//
// Determinism  as search::solve().
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/stage_plan.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/schedule/fuse.hpp"
#include "pipeweaver/search/found.hpp"

#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A replica of the first model, and all of the model beside it, each under its own policy.
struct ModelPipelines {
    std::vector<schedule::Pipeline> all;  ///< the first, then those beside it
    emulator::Recompute recompute;        ///< the least with which both fit one after the other
};

/// Both priced, with the memory of their GPUs shared. Pre: both have GPUs of one kind and one tp; the first has one
/// replica; those beside it have its ranks together. Throws Error{limit} where no recomputation makes them fit: the
/// rank and the bytes; and as try_emulate().
[[nodiscard]] ModelPipelines pipelines_of(const EmulationRequest& first, const EmulationRequest& beside,
                                          const Executor& execute);

struct FusedPlan {
    schedule::Problem problem;
    std::vector<Duration> alone;  ///< each pipeline under its own schedule
    Duration in_turn{};           ///< the first, then those beside it, which run at once
    search::Found found{};        ///< has a schedule; no longer than in_turn where both fit the memory in turn
};

/// The pipelines together: searched from one after the other, and then for a smaller peak at that makespan where the
/// request asks for it. Throws Error{limit} where no schedule was found, and as fuse().
[[nodiscard]] FusedPlan plan_fused(const std::vector<schedule::Pipeline>& pipelines, SolveRequest request,
                                   const Executor& execute, const Time& time);

}  // namespace pipeweaver::planner
