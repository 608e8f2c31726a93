#include "planner/replicas/plan_replica.hpp"

#include "pipeweaver/planner/static_order.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

std::vector<Schedule> carried_orders(const std::vector<const StaticOrder*>& orders, const StepProblem& step) {
    std::vector<Schedule> all;
    for (const StaticOrder* order : orders)
        for (Schedule& one : order->carried(step)) all.push_back(std::move(one));
    return all;
}

ScheduleWanted wanted_of(const AllReplicas& all, std::size_t number, std::size_t tasks) {
    ScheduleWanted wanted = schedule_wanted(all.job);
    if (!all.wanted.policies.empty()) wanted.policies = all.wanted.policies;
    // Of a large problem full bounds take as long as a dozen schedules: they come last.
    wanted.full_bounds_last = !effort_of(tasks, 1).full_bounds_first && all.assignment.examines(number);
    wanted.bounds = wanted.full_bounds_last ? search::BoundEffort::quick : all.assignment.bounds(number);
    wanted.policy_bounds = wanted.bounds;
    if (!all.wanted.orders.empty())
        wanted.more = [&all](const StepProblem& step) { return carried_orders(all.wanted.orders, step); };
    wanted.rule = all.job.robust ? robust_rule : usual_rule;
    wanted.problems = all.assignment.shares.size();
    wanted.search = wanted.choose = all.wanted.search;
    return wanted;
}

}  // namespace

StepWanted replica_wanted(const Setup& setup, const partition::Partition& partition, std::size_t number) {
    return {.name = problem_name(setup, partition, number), .replica = number, .most_tasks = sizes.tasks};
}

ReplicaPlan finished(const Assignment& assignment, std::size_t number, ScheduledStep scheduled) {
    ReplicaPlan replica;
    replica.number = number;
    replica.examined = assignment.examines(number);
    replica.microbatches = assignment.shares[number];
    FinishedStep step = finish(std::move(scheduled));
    replica.cut = std::move(step.cut);
    replica.found = std::move(step.found);
    replica.waits = step.waits;
    replica.optimizer = replica.cut.step.optimizer;
    replica.model_flops = replica.cut.step.model_flops;
    add_shares(replica.cut.step, *replica.found.schedule, replica.shares);
    const auto& pairs = replica.cut.step.problem.pairs;
    replica.backwards = pairs.size();
    replica.split_backwards = static_cast<std::size_t>(
        std::count_if(pairs.begin(), pairs.end(), [](const Pair& pair) { return pair.weight.has_value(); }));
    return replica;
}

PlannedReplica plan_replica(const AllReplicas& all, std::size_t number, const Executor& execute, const Time& time) {
    const Setup& setup = *all.job.setup;
    Step step =
        build(setup, all.partition, all.assignment.microbatches[number], replica_wanted(setup, all.partition, number));
    const std::size_t tasks = std::max<std::size_t>(1, step.tasks());
    const Time mine = time.fraction(1, static_cast<std::int64_t>(tasks) * all.wanted.on_replica_takes);
    PlannedReplica one;
    one.scheduled = schedule_step(std::move(step), wanted_of(all, number, tasks), execute, mine);
    one.why_not = one.scheduled.why_no_schedule();
    if (!one.why_not.empty()) return one;
    one.times = times_of(one.scheduled.step);
    one.plan = finished(all.assignment, number, one.scheduled);
    return one;
}

void let_go(ReplicaPlan& replica) {
    StepProblem rest;
    rest.problem.name = std::move(replica.cut.step.problem.name);
    rest.problem.ranks = std::move(replica.cut.step.problem.ranks);
    rest.dealt = std::move(replica.cut.step.dealt);
    rest.memory = std::move(replica.cut.step.memory);
    replica.cut.step = std::move(rest);
    replica.found.alternatives = {};
    replica.found.first.reset();
    replica.found.replay.start = {};
}

}  // namespace pipeweaver::planner
