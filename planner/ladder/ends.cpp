#include "pipeweaver/planner/ends.hpp"

#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "planner/evaluate/step.hpp"
#include "planner/replicas/plan_replica.hpp"
#include "planner/way/run.hpp"

#include <algorithm>
#include <utility>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

// A step in the order that it has, under other times. None: these let it have no backwards split.
std::optional<Duration> step_under(const Setup& setup, const Cut& cut, const schedule::Schedule& order,
                                   const StepWanted& wanted) {
    Step step = build(setup, cut.partition, Units(cut.units), wanted);
    if (step.shortage) return std::nullopt;
    SplitChoice split;
    for (const schedule::Pair& pair : cut.step.problem.pairs) split.push_back(pair.weight.has_value());
    if (std::find(split.begin(), split.end(), true) != split.end()) {
        if (!setup.recipe.is_serial()) return std::nullopt;
        BuiltStep parted = split_backwards(step.cut.step, split);
        if (parted.shortage) return std::nullopt;
        step.cut.step = std::move(*parted.step);
    }
    const PortReplay ran = settle(step.input, step.cut.step, order);
    return ran.replay.makespan + step.cut.step.optimizer;
}

// How many of so many replicas are replayed, with so many tasks each: of large ones few, as under wrong costs.
std::size_t replayed(std::size_t tasks, std::size_t replicas) {
    return effort_of(std::max<std::size_t>(1, tasks), replicas).perturbed;
}

}  // namespace

std::optional<HostBound> far_end(const LaunchedWay& way, const Target& target, Duration near, const Executor& execute) {
    auto waiting = waiting_for_host(*way.setup);
    if (!waiting) return std::nullopt;
    Way eager = way;
    eager.setup = std::make_shared<const Setup>(std::move(*waiting));
    std::size_t tasks = 0;
    auto replicas = some_as_run(eager, target, of_shares(way.batch->microbatches, way.assigned), way.slowest);
    for (const Microbatches& own : replicas)
        for (const auto& chain : way.partition.chains) tasks = std::max(tasks, 2 * own.size() * chain.stages.size());
    replicas.resize(replayed(tasks, replicas.size()));
    const WayResult ran = run_way(eager, replicas, target, true, execute);
    return ran.runs() ? host_bound_of(*eager.setup, near, ran.step) : std::nullopt;
}

std::optional<HostBound> far_end(const Plan& plan, const Setup& setup) {
    const auto waiting = waiting_for_host(setup);
    if (!waiting) return std::nullopt;
    std::vector<const ReplicaPlan*> replicas{&plan.replicas[plan.slowest]};
    for (const ReplicaPlan& one : plan.replicas)
        if (one.examined && &one != replicas.front()) replicas.push_back(&one);
    replicas.resize(replayed(replicas.front()->cut.step.problem.tasks.size(), replicas.size()));
    Duration longest{};
    for (const ReplicaPlan* one : replicas) {
        const auto step = step_under(*waiting, one->cut, *one->found.schedule,
                                     replica_wanted(*waiting, one->cut.partition, one->number));
        if (!step) return std::nullopt;
        longest = std::max(longest, *step);
    }
    return host_bound_of(*waiting, plan.step, longest);
}

std::optional<HostBound> far_end(const TargetPlan& plan, const Setup& setup, Duration near) {
    const auto waiting = waiting_for_host(setup);
    if (!waiting) return std::nullopt;
    const auto step = step_under(*waiting, plan.cut, *plan.found.schedule,
                                 {.name = plan.cut.step.problem.name,
                                  .target = &target(plan.target),
                                  .menu = {plan.recompute.everywhere},
                                  .mode_of_rank = plan.by_rank,
                                  .replica = plan.replica});
    return step ? host_bound_of(*waiting, near, *step) : std::nullopt;
}

}  // namespace pipeweaver::planner
