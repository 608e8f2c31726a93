
#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/static_order.hpp"
#include "pipeweaver/planner/time.hpp"
#include "planner/job/sample.hpp"
#include "planner/replicas/plan_replica.hpp"
#include "planner/schedule/split_search.hpp"
#include "planner/way/settings.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

PlannedReplicas::PlannedReplicas(const AllReplicas& all, const std::vector<std::size_t>& numbers,
                                 const OnReplica& on_replica)
    : all_(all), numbers_(numbers), on_replica_(on_replica), replicas_(numbers.size()), times_(numbers.size()) {}

void PlannedReplicas::plan(const Executor& execute, const Time& time, double part) {
    const auto make = [&](std::size_t number, const Executor& on, const Time& mine) {
        return plan_replica(all_, number, on, mine);
    };
    plan(make, execute, time, part);
}

void PlannedReplicas::plan(const MakeReplica& make, const Executor& execute, const Time& time, double part) {
    std::vector<std::size_t> places(numbers_.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    const auto work = [&](std::size_t place, const Executor& on, const Time& mine) {
        const Time shown = told(mine, all_.wanted.on_doing, {doing::replica, place + 1, numbers_.size(), {}});
        keep(place, make(numbers_[place], on, shown));
    };
    for_replicas(places, work, execute, time, part);
}

std::string PlannedReplicas::why_not() const {
    const auto none = std::find_if(replicas_.begin(), replicas_.end(),
                                   [](const PlannedReplica& one) { return !one.why_not.empty(); });
    return none == replicas_.end() ? std::string() : none->why_not;
}

Duration PlannedReplicas::step() const {
    Duration makespan{}, optimizer{};
    for (const PlannedReplica& one : replicas_) {
        makespan = std::max(makespan, one.plan.found.replay.makespan);
        optimizer = std::max(optimizer, one.plan.optimizer);
    }
    return makespan + optimizer;
}

std::vector<const ScheduledStep*> PlannedReplicas::replayed(const Time& time) const {
    std::vector<const ScheduledStep*> examined;
    std::size_t tasks = 1;
    for (const PlannedReplica& one : replicas_) {
        if (!one.plan.examined) continue;
        tasks = std::max(tasks, one.scheduled.searched().problem.tasks.size());
        examined.push_back(&one.scheduled);
    }
    const Effort effort = effort_of(tasks, std::max<std::size_t>(1, examined.size()));
    if (!effort.perturbs_anyhow && time.is_over()) return {};
    examined.resize(std::min(examined.size(), effort.perturbed));
    return examined;
}

std::vector<ReplicaPlan> PlannedReplicas::take() {
    std::vector<ReplicaPlan> plans;
    for (PlannedReplica& one : replicas_) plans.push_back(std::move(one.plan));
    return plans;
}

bool PlannedReplicas::is_slower(std::size_t place, std::size_t other) const {
    const auto makespan = [&](std::size_t p) { return replicas_[p].plan.found.replay.makespan; };
    return std::pair(makespan(place), other) > std::pair(makespan(other), place);
}

void PlannedReplicas::keep(std::size_t place, PlannedReplica one) {
    if (!one.why_not.empty()) {
        replicas_[place].why_not = std::move(one.why_not);
        return;
    }
    if (on_replica_) on_replica_(one.plan);
    times_[place] = std::move(one.times);
    if (!one.plan.examined) {
        one.scheduled.step = {};
        one.scheduled.found = {};
    }
    const std::scoped_lock lock(mutex_);
    replicas_[place] = std::move(one);
    if (!on_replica_ || replicas_[place].plan.examined) return;
    const std::size_t other = slowest_.value_or(place);
    slowest_ = is_slower(place, other) ? place : other;
    if (other != place) let_go(replicas_[*slowest_ == place ? other : place].plan);
}

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

std::vector<partition::Partition> partitions_of(const Job& job, const Batch& batch) {
    if (job.fixed) return {job.fixed->partition};
    auto all = partition::partitions_for(partition::Use::framework, *job.setup, cut_on(job, batch), job.partition);
    for (partition::Partition& one : all) one.modes = menu_of(job);
    return all;
}

std::vector<std::size_t> replicas_of(const Job& job, const Wanted& wanted) {
    if (!wanted.replicas.empty()) return wanted.replicas;
    std::vector<std::size_t> all(static_cast<std::size_t>(job.setup->layout.dp));
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
}

TargetPlan no_target_plan(const Target& target, const std::string& why) {
    TargetPlan plan;
    plan.target = target.name;
    plan.why_not = why;
    return plan;
}

std::vector<TargetPlan> no_target_plans(const std::string& why) {
    std::vector<TargetPlan> plans;
    for (const Target& one : targets())
        if (has_own_plan(one)) plans.push_back(no_target_plan(one, why));
    return plans;
}

Duration mean_makespan(const Plan& plan) {
    Duration sum{};
    for (const ReplicaPlan& replica : plan.replicas) sum += replica.found.replay.makespan;
    return sum / static_cast<std::int64_t>(plan.replicas.size());
}

Plan assemble(const Job& job, const Assignment& assignment, std::vector<ReplicaPlan> replicas) {
    Plan plan;
    plan.loads = assignment.loads;
    Duration optimizer{};
    for (std::size_t r = 0; r < replicas.size(); ++r) {
        const ReplicaPlan& replica = replicas[r];
        if (r == 0 || replica.found.replay.makespan > plan.makespan) plan.slowest = r;
        plan.makespan = std::max(plan.makespan, replica.found.replay.makespan);
        plan.lower_bound = std::max(plan.lower_bound, replica.found.bound);
        optimizer = std::max(optimizer, replica.optimizer);
        plan.model_flops += replica.model_flops;
        plan.shares += replica.shares;
    }
    plan.replicas = std::move(replicas);
    normalise(plan.shares);
    plan.step = plan.makespan + optimizer;
    const Setup& setup = *job.setup;
    Layout planned = setup.layout;
    planned.dp = static_cast<std::int64_t>(plan.replicas.size());
    plan.mfu = model_flops_utilization(plan.model_flops, setup.cluster, planned, plan.step);
    plan.in_situ = in_situ_factors(*setup.costs, setup.cluster.device, precision_of(setup.recipe.execution.products));
    return plan;
}

namespace {

// Of what is left after so many turns of equal length, all of which take `part` of what there was before the first.
double part_of_rest(double part, std::size_t turn, std::size_t turns) {
    const double each = part / static_cast<double>(turns);
    return each / (1 - static_cast<double>(turn) * each);
}

// How much longer replicas take than the time that they are given: what a plan must do of each, and write of it.
class Overrun {
public:
    Duration mean() const { return count_ == 0 ? Duration{} : sum_ / count_; }
    void add(Duration one) {
        sum_ += std::max(Duration{}, one);
        ++count_;
    }

private:
    Duration sum_{};
    std::int64_t count_ = 0;
};

}  // namespace

void for_replicas(std::span<const std::size_t> replicas, const ReplicaWork& work, const Executor& execute,
                  const Time& time, double part) {
    const std::size_t threads = threads_of(execute);
    const bool side_by_side = threads > 1 && (replicas.size() % threads == 0 || replicas.size() >= 2 * threads);
    const std::size_t at_once = side_by_side ? threads : 1;
    const std::size_t turns = (replicas.size() + at_once - 1) / at_once;
    std::mutex mutex;
    std::size_t begun = 0;
    Overrun overrun;
    const auto mine = [&] {
        const std::scoped_lock lock(mutex);
        return time.fraction(part_of_rest(part, begun++ / at_once, turns), overrun.mean());
    };
    const auto run = [&](std::size_t k) {
        const Time own = mine();
        const auto given = own.left();
        const Stopwatch taken;
        work(replicas[k], side_by_side ? in_order : execute, own);
        if (!given) return;
        const std::scoped_lock lock(mutex);
        overrun.add(taken.elapsed() - *given);
    };
    run_jobs(side_by_side ? execute : in_order, replicas.size(), run);
}

}  // namespace pipeweaver::planner
