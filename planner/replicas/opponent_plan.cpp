#include "planner/replicas/opponent_plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "planner/replicas/planned_replicas.hpp"
#include "planner/way/policy_run.hpp"
#include "planner/way/settings.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

const Target& runs_way(const Job& job, const Way& way) {
    const Target& own = target(job.target);
    return launches(own, way) ? own : targets().front();
}

// The cut with the recomputations that the way may take as the modes of its passes.
partition::Partition with_modes(const Way& way) {
    partition::Partition partition = way.partition;
    if (way.recompute->by_rank)
        partition.modes = opponent_settings(*way.setup, way.partition);
    else
        partition.modes = {way.recompute->everywhere};
    return partition;
}

std::vector<std::size_t> all_of(const Assignment& assignment) {
    std::vector<std::size_t> numbers(assignment.shares.size());
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    return numbers;
}

PlannedReplica as_opponent(const AllReplicas& all, const Way& way, std::size_t number) {
    const Job& job = all.job;
    const Target& runs = runs_way(job, way);
    StepWanted wanted = replica_wanted(*job.setup, all.partition, number);
    wanted.target = &runs;
    Step step = build(*job.setup, all.partition,
                      as_run_by(runs, job.setup->layout, all.assignment.microbatches[number]), wanted);
    if (step.shortage) fail(ErrorKind::limit, "{}", step.shortage->text());
    auto run = StepUnderPolicy(step.cut.step, way.policy, all.partition.modes).run(*way.recompute);
    if (!run) fail(ErrorKind::limit, "{}: replica {} does not fit", way.name, number);
    if (job.split != Split::never) step.split = split_step(step.cut.step);
    step.bound = bound_of(step, job.split != Split::never, all.assignment.bounds(number));
    PolicyRun policy{.policy = way.policy, .result = {std::move(run->schedule), {}, {}}};
    PortReplay in_full = replay_in_full(step, false, *policy.result.schedule);
    policy.result.replay = std::move(in_full.replay);
    policy.waits = in_full.waits;
    PlannedReplica one;
    one.scheduled = take_policy(step, policy);
    one.scheduled.step.policies = {std::move(policy)};
    one.times = times_of(one.scheduled.step);
    one.plan = finished(all.assignment, number, one.scheduled);
    // What is repeated to pad a microbatch is no sample of the plan's.
    if (runs.fixed_shapes)
        one.plan.cut.units = partition::units(all.partition, job.setup->model, all.assignment.microbatches[number]);
    return one;
}

}  // namespace

const Baseline* faster_opponent(const Job& job, const Baselines& opponents, Duration step) {
    const Baseline* best = nullptr;
    const Target& runs = target(job.target);
    // Those that were padded would be other steps as the plan's.
    if (runs.fixed_shapes) return best;
    for (const Baseline& one : opponents.all) {
        if (!one.is_opponent || !one.on_own_ranks || one.step >= (best == nullptr ? step : best->step)) continue;
        if (one.launched || !runs.action_lists) best = &one;
    }
    return best;
}

struct OpponentPlan::Made {
    Made(const Job& job, const Wanted& wanted, const Way& way, const Assignment& assignment)
        : partition(with_modes(way)),
          numbers(all_of(assignment)),
          all{job, wanted, partition, assignment},
          replicas(all, numbers, wanted.on_replica) {}

    partition::Partition partition;
    std::vector<std::size_t> numbers;
    AllReplicas all;
    PlannedReplicas replicas;
};

OpponentPlan::OpponentPlan(const Job& job, const Wanted& wanted, const Way& way, const Assignment& assignment,
                           const Executor& execute)
    : made_(std::make_unique<Made>(job, wanted, way, assignment)) {
    const auto make = [&](std::size_t number, const Executor&, const Time&) {
        return as_opponent(made_->all, way, number);
    };
    made_->replicas.plan(make, execute, {}, 1);
}

OpponentPlan::OpponentPlan(OpponentPlan&&) noexcept = default;
OpponentPlan& OpponentPlan::operator=(OpponentPlan&&) noexcept = default;
OpponentPlan::~OpponentPlan() = default;

PlannedReplicas& OpponentPlan::replicas() { return made_->replicas; }

}  // namespace pipeweaver::planner
