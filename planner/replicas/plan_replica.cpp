#include "planner/replicas/plan_replica.hpp"

#include "pipeweaver/base/deadline.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/static_order.hpp"
#include "planner/job/sample.hpp"
#include "planner/schedule/schedule_step.hpp"
#include "planner/schedule/split_search.hpp"
#include "planner/way/run.hpp"
#include "planner/way/settings.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

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

// By so many tasks of its own, which may be fewer than others have.
bool may_be_replayed(const AllReplicas& all, std::size_t number, std::size_t tasks) {
    if (!all.assignment.examines(number)) return false;
    const auto& wanted = all.wanted.replicas;
    const auto& examined = all.assignment.examined;
    const auto before = std::count_if(examined.begin(), examined.end(), [&](std::size_t one) {
        return one < number && (wanted.empty() || std::find(wanted.begin(), wanted.end(), one) != wanted.end());
    });
    return static_cast<std::size_t>(before) < effort_of(std::max<std::size_t>(1, tasks), examined.size()).perturbed;
}

// Of what is left after so many turns of equal length, all of which take `part` of what there was before the first.
double part_of_rest(double part, std::size_t turn, std::size_t turns) {
    const double each = part / static_cast<double>(turns);
    return each / (1 - static_cast<double>(turn) * each);
}

}  // namespace

void PlannedReplicas::plan(const Executor& execute, const Time& time, double part, const MakeReplica& make) {
    std::vector<std::size_t> places(numbers_.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    const auto work = [&](std::size_t place, const Executor& on, const Time& mine) {
        const Time shown = told(mine, all_.wanted.on_doing, {doing::replica, place + 1, numbers_.size(), {}});
        keep(place, make(all_, numbers_[place], on, shown));
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
        const std::size_t own = one.scheduled.searched().problem.tasks.size();
        if (!one.plan.examined || own == 0) continue;
        tasks = std::max(tasks, own);
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
    const OnReplica& on_replica = all_.wanted.on_replica;
    if (on_replica) on_replica(one.plan);
    times_[place] = std::move(one.times);
    const std::scoped_lock lock(mutex_);
    replicas_[place] = std::move(one);
    if (!on_replica || replicas_[place].plan.examined) return;
    const std::size_t other = slowest_.value_or(place);
    slowest_ = is_slower(place, other) ? place : other;
    if (other != place) let_go(replicas_[*slowest_ == place ? other : place].plan);
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

PlannedReplica planned(const AllReplicas& all, std::size_t number, ScheduledStep scheduled) {
    PlannedReplica one;
    one.times = times_of(scheduled.step);
    if (may_be_replayed(all, number, scheduled.searched().problem.tasks.size()))
        one.scheduled = scheduled;
    else
        one.scheduled.choice = scheduled.choice;
    one.plan = finished(all.assignment, number, std::move(scheduled));
    return one;
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
    return planned(all, number, std::move(one.scheduled));
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
    const Precision precision = precision_of(setup.recipe.execution.products);
    plan.in_situ = in_stack(in_situ_factors(*setup.costs, setup.cluster.device, precision), setup.recipe);
    return plan;
}

void for_replicas(std::span<const std::size_t> replicas, const ReplicaWork& work, const Executor& execute,
                  const Time& time, double part) {
    const std::size_t threads = threads_of(execute);
    const bool side_by_side = threads > 1 && (replicas.size() % threads == 0 || replicas.size() >= 2 * threads);
    const std::size_t at_once = side_by_side ? threads : 1;
    const std::size_t turns = (replicas.size() + at_once - 1) / at_once;
    std::mutex mutex;
    std::size_t begun = 0;
    // How much longer replicas take than the time that they are given: what a plan must do of each, and write of it.
    Duration overrun{};
    std::int64_t measured = 0;
    const auto mine = [&] {
        const std::scoped_lock lock(mutex);
        const Duration mean = measured == 0 ? Duration{} : overrun / measured;
        return time.fraction(part_of_rest(part, begun++ / at_once, turns), mean);
    };
    const auto run = [&](std::size_t k) {
        const Time own = mine();
        const auto given = own.left();
        const Stopwatch taken;
        work(replicas[k], side_by_side ? in_order : execute, own);
        if (!given) return;
        const std::scoped_lock lock(mutex);
        overrun += std::max(Duration{}, taken.elapsed() - *given);
        ++measured;
    };
    run_jobs(side_by_side ? execute : in_order, replicas.size(), run);
}

const Baseline* Baselines::opponent() const {
    const Baseline* first = nullptr;
    for (const Baseline& one : all)
        if (one.way && (first == nullptr || *one.way < *first->way)) first = &one;
    return first;
}

ReplicaTimes times_of(const Step& known) {
    ReplicaTimes times{{}, known.bound.value, known.cut.step.optimizer};
    for (const PolicyRun& run : known.policies)
        times.policies.push_back({run.policy, run.makespan(), run.applies() ? std::string() : run.result.why_not});
    return times;
}

Baselines baselines_of(const partition::Partition& partition, const std::vector<ReplicaTimes>& replicas) {
    Baselines result;
    for (std::size_t p = 0; p < replicas.front().policies.size(); ++p) {
        Baseline slowest{partition.name, partition.chunks_per_rank, replicas.front().policies[p].policy};
        std::string refused;
        for (const ReplicaTimes& replica : replicas) {
            const PolicyTime& one = replica.policies[p];
            if (refused.empty()) refused = one.why_not;
            if (!refused.empty()) break;
            slowest.bound = std::max(slowest.bound.value_or(Duration{}), replica.bound);
            if (one.makespan <= slowest.makespan) continue;
            slowest.makespan = one.makespan;
            slowest.step = one.makespan + replica.optimizer;
        }
        if (refused.empty())
            result.all.push_back(slowest);
        else
            result.not_applicable.push_back({partition.name, partition.chunks_per_rank, slowest.policy, refused});
    }
    return result;
}

const Baseline* fastest_policy(const Baselines& baselines) {
    const Baseline* fastest = nullptr;
    for (const Baseline& one : baselines.all)
        if (!one.is_opponent && (fastest == nullptr || one.step < fastest->step)) fastest = &one;
    return fastest;
}

BaselinePlan pictured(const OpponentRun& run, std::size_t replica) {
    const Step& step = run.steps[replica];
    BaselinePlan plan{run.baseline, take_cut(step), run.schedules[replica], {}};
    plan.replay = settle(step.input, plan.cut.step, plan.schedule).replay;
    return plan;
}

std::optional<Robustness> robustness_of(const std::vector<const ScheduledStep*>& examined, const OpponentRun* opponent,
                                        const Baseline* policy, const Draws& draws, const Executor& execute) {
    if (opponent == nullptr && policy == nullptr) return std::nullopt;
    std::vector<Scheduled> plan;
    std::vector<const Baseline*> against;
    std::vector<Side> sides;
    plan.reserve(examined.size());
    for (const ScheduledStep* one : examined) plan.push_back({&one->searched(), &*one->found.schedule});
    if (opponent != nullptr) {
        against.push_back(&opponent->baseline);
        Side& side = sides.emplace_back();
        for (std::size_t r = 0; r < examined.size(); ++r)
            side.push_back({&opponent->steps[r].cut.step, &opponent->schedules[r]});
    }
    if (policy != nullptr) {
        against.push_back(policy);
        Side& side = sides.emplace_back();
        for (const ScheduledStep* one : examined) {
            const PolicyRun& run = *one->step.run(policy->policy);
            side.push_back({&one->step.form(run.on_split), &*run.result.schedule});
        }
    }
    Robustness result = robustness(plan, sides, draws, execute);
    result.replicas = examined.size();
    for (std::size_t i = 0; i < against.size(); ++i) {
        result.against[i].partition = against[i]->partition;
        result.against[i].chunks_per_rank = against[i]->chunks_per_rank;
        result.against[i].policy = against[i]->policy;
        result.against[i].recompute = against[i]->recompute;
    }
    return result;
}

std::optional<OpponentRun> pipelined_opponent(const Target& runs, const Opponents& opponents,
                                              const Baselines& baselines, const std::vector<Microbatches>& replicas,
                                              const std::vector<std::size_t>& numbers) {
    const Baseline* best = nullptr;  // rows stand by their steps
    for (const Baseline& one : baselines.all)
        if (one.way && one.on_own_ranks && (best == nullptr || (one.launched && !best->launched))) best = &one;
    if (!best) return std::nullopt;
    const OpponentWay& way = opponents.ways[*best->way];
    OpponentRun run{.baseline = *best, .steps = {}, .schedules = {}};
    BuiltWay steps(way, some_as_run(way, runs, replicas, numbers), runs);
    WayResult ran = steps.run(way.policy, best->recompute, true);
    if (!ran.runs()) return std::nullopt;
    run.baseline.recompute = ran.recompute;
    for (std::size_t r = 0; r < numbers.size(); ++r) {
        run.steps.push_back(steps.take(r));
        run.schedules.push_back(std::move(ran.replicas[r].schedule));
    }
    return run;
}

}  // namespace pipeweaver::planner
