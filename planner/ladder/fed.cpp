// What feeds the step that a plan's ladder advises.
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "planner/ladder/rungs.hpp"
#include "planner/replicas/assignment.hpp"
#include "planner/way/run.hpp"

#include <fmt/format.h>

#include <utility>

namespace pipeweaver::planner {

namespace {

// Replicas of a step, and when they take what they are fed.
struct Fed {
    std::vector<Microbatches> microbatches{};
    std::vector<std::vector<Duration>> begins{};
    std::vector<Duration> steps{};

    void add(Microbatches own, const schedule::Problem& problem, const schedule::Schedule& schedule, Duration step) {
        begins.push_back(begins_of(problem, schedule, own.size()));
        steps.push_back(step);
        microbatches.push_back(std::move(own));
    }
};

// All replicas, as flags launch them.
Fed launched(const LaunchedWay& way, const Target& target, const Executor& execute) {
    const WayOfTarget said = WayOfTarget::as_said(way, target);
    Fed fed;
    fed.microbatches = of_shares(way.batch->microbatches, way.assigned);
    const auto as_run = as_run_by(*said.target, way.setup->layout, fed.microbatches);
    const auto like = first_alike(fed.microbatches);
    fed.begins.resize(like.size());
    fed.steps.resize(like.size());
    run_jobs(execute, like.size(), [&](std::size_t r) {
        if (like[r] != r) return;
        Step step = said.build(way, partition::units(way.partition, way.setup->model, as_run[r]));
        const WayResult ran = run_steps({&step}, way.policy, said.settings, way.recompute);
        PIPEWEAVER_ASSERT(ran.runs());
        const schedule::Schedule& schedule = ran.replicas.front().schedule;
        fed.steps[r] = replay_in_full(step, false, schedule).replay.makespan + step.cut.step.optimizer;
        static_cast<void>(emulator::set_lags(step.cut.step, schedule));
        fed.begins[r] = begins_of(step.cut.step.problem, schedule, as_run[r].size());
    });
    for (std::size_t r = 0; r < like.size(); ++r) {
        fed.begins[r] = fed.begins[like[r]];
        fed.steps[r] = fed.steps[like[r]];
    }
    return fed;
}

// Those replicas whose steps are remembered.
Fed planned(const Plan& plan, const Batch& batch) {
    Fed fed;
    for (const ReplicaPlan& one : plan.replicas)
        if (!one.cut.step.problem.tasks.empty())
            fed.add(of_share(batch.microbatches, one.microbatches), one.cut.step.problem, *one.found.schedule,
                    one.found.replay.makespan + one.optimizer);
    return fed;
}

Fed planned(const TargetPlan& own, const Batch& batch) {
    Fed fed;
    fed.add(of_share(batch.microbatches, own.microbatches), own.cut.step.problem, *own.found.schedule,
            own.found.replay.makespan + own.cut.step.optimizer);
    return fed;
}

Input fed_by(const loader::Loader& loader, const workloads::Model& model, const Batch& batch, const Fed& fed,
             std::size_t replicas) {
    if (auto why = why_no_input(loader, model, batch.samples, fed.microbatches)) {
        Input none;
        none.loader = loader;
        none.why_not = std::move(*why);
        return none;
    }
    std::vector<InputReplica> all;
    for (std::size_t r = 0; r < fed.microbatches.size(); ++r)
        all.push_back({&fed.microbatches[r], fed.begins[r], fed.steps[r]});
    Input input = input_of(loader, model, batch.samples, all);
    if (all.size() < replicas)
        input.left_out.push_back(fmt::format(
            "the loader is replayed for {} of {} replicas, whose orders are at hand: others may wait longer",
            all.size(), replicas));
    return input;
}

}  // namespace

Input input_of_advised(const Request& request, const Plan& plan, const Executor& execute) {
    const Job& job = request.job;
    const loader::Loader& loader = *job.loader;
    const Rung* const best = plan.ladder.rungs.empty() ? nullptr : &plan.ladder.best();
    if (best != nullptr && best->name == groups_rung) {
        Input none;
        none.loader = loader;
        none.why_not = "a loader is not replayed for modules on GPUs of their own";
        return none;
    }
    if (best != nullptr && best->launched) {
        const LaunchedWay& way = *best->launched;
        const Fed fed = launched(way, target(job.target), execute);
        return fed_by(loader, way.setup->model, *way.batch, fed, fed.steps.size());
    }
    const Target* const by = best == nullptr ? nullptr : &target(target_called(best->target));
    const bool is_targets = by != nullptr && has_own_plan(*by);
    const Fed fed = is_targets ? planned(plan.target(by->name), request.batch) : planned(plan, request.batch);
    return fed_by(loader, job.setup->model, request.batch, fed, static_cast<std::size_t>(job.setup->layout.dp));
}

}  // namespace pipeweaver::planner
