#include "pipeweaver/planner/fused_plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pipeweaver::planner {

using namespace schedule;

namespace {

// Of the model as it stands there, whatever fits.
EmulationRequest recomputing(const EmulationRequest& request, emulator::Recompute recompute) {
    EmulationRequest changed = request;
    changed.recompute = StepRecompute{.everywhere = recompute};
    changed.any_memory = true;
    return changed;
}

Pipeline pipeline_of(const EmulationRequest& request, std::size_t replica, std::string name, const Executor& execute) {
    auto [problem, schedule, duration] = scheduled_times(request, replica, execute);
    const Bytes capacity = emulator::capacity_of(*request.job.setup);
    for (Rank& rank : problem.ranks) rank.capacity = capacity;
    return {std::move(name), std::move(problem), std::move(schedule)};
}

// Why the pipelines do not fit one after the other; empty: they do.
std::string why_not_in_turn(const std::vector<Pipeline>& pipelines) {
    const Fused fused = fuse(pipelines);
    const Replay replay = schedule::replay(fused.problem, fused.in_turn);
    return replay.outcome == Outcome::completed ? "" : why_it_fails(fused.problem, replay);
}

}  // namespace

ModelPipelines pipelines_of(const EmulationRequest& first, const EmulationRequest& beside, const Executor& execute) {
    const std::int64_t replicas = beside.job.setup->layout.dp;
    std::string why_not;
    for (const emulator::Recompute recompute : emulator::usual_modes()) {
        ModelPipelines pipelines{.all = {}, .recompute = recompute};
        pipelines.all.push_back(pipeline_of(recomputing(first, recompute), 0, "first", execute));
        for (std::int64_t r = 0; r < replicas; ++r)
            pipelines.all.push_back(pipeline_of(recomputing(beside, recompute), static_cast<std::size_t>(r),
                                                replicas == 1 ? "beside" : fmt::format("beside {}", r), execute));
        why_not = why_not_in_turn(pipelines.all);
        if (why_not.empty()) return pipelines;
    }
    fail(ErrorKind::limit, "{} beside {}: {}", first.job.setup->model.name, beside.job.setup->model.name, why_not);
}

FusedPlan plan_fused(const std::vector<Pipeline>& pipelines, SolveRequest request, const Executor& execute,
                     const Time& time) {
    Fused fused = fuse(pipelines);
    validate(fused.problem);
    FusedPlan plan{.problem = std::move(fused.problem), .alone = {}};
    for (const Pipeline& one : pipelines) plan.alone.push_back(replay(one.problem, one.schedule).makespan);
    plan.in_turn = plan.alone.front() + *std::max_element(plan.alone.begin() + 1, plan.alone.end());
    request.starts.push_back(std::move(fused.in_turn));
    plan.found = solve_problem(Replayer(plan.problem), request, execute, time);
    if (!plan.found.schedule) fail(ErrorKind::limit, "{}: {}", plan.problem.name, plan.found.why_not);
    return plan;
}

}  // namespace pipeweaver::planner
