#include "pipeweaver/planner/plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/partition_choice.hpp"
#include "planner/job/sample.hpp"
#include "planner/replicas/assemble.hpp"
#include "planner/replicas/exchange.hpp"
#include "planner/replicas/for_replicas.hpp"
#include "planner/targets/target_plan.hpp"

#include <algorithm>
#include <mutex>
#include <numeric>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Partition;

namespace {

// What a target may run: the plan's own partition where the target runs it or it was asked for by name, else what its
// users would cut, each batch of the sample as it would run. A chain of many small stages is seldom what a target of
// one chain is fastest with.
std::vector<Partition> target_partitions(const Job& job, const Batch& batch, const Target& target,
                                         const Partition& own) {
    const bool one_chain = own.chains.size() == 1 && own.dealt.empty();
    if (!target.one_chain || one_chain || !job.partition.empty()) return {own};
    Microbatches all;
    for (const Microbatches& one : batches_of(job, batch))
        for (const auto& microbatch : target.fixed_shapes ? partition::pad(one).microbatches : one)
            all.push_back(microbatch);
    return partition::partitions_for(partition::Use::framework, *job.setup, all);
}

std::vector<TargetPlan> target_plans(const Job& job, const Batch& batch, const Partition& own,
                                     const Assignment& assignment, const Executor& execute, const Time& time,
                                     const OnDoing& on) {
    std::vector<TargetPlan> plans;
    for (const Target& one : targets()) {
        if (!has_own_plan(one)) continue;
        plans.push_back(make_target_plan(job, one, target_partitions(job, batch, one, own),
                                         assignment.microbatches.front(), execute,
                                         told(time, on, {one.name, 0, 0, {}})));
        plans.back().microbatches = assignment.shares.front();
        if (job.target == one.name && !plans.back().found.schedule)
            fail(ErrorKind::limit, "{}: {}", one.name, plans.back().why_not);
    }
    return plans;
}

// What the plan is held against, known before it is made: the opponents on the replicas that are examined.
struct Beside {
    Baselines baselines;
    std::optional<OpponentRun> run;
    std::optional<Opponents> ways;
};

Beside beside(const Job& job, const Batch& batch, const Wanted& wanted, const Assignment& assignment,
              const Executor& execute, const Time& time) {
    Beside all;
    if (!wanted.opponents) return all;
    const Executor telling = told(execute, wanted.on_doing, "opponents");
    all.ways = wanted.known_opponents ? *wanted.known_opponents : choose_opponents(job, batch, telling, time);
    if (all.ways->cut_short) all.baselines.not_applicable.push_back(opponents_left_out());
    if (all.ways->ways.empty()) return all;
    all.baselines = run_opponents(*all.ways, job, batch, telling, time);
    all.baselines.chosen_on = job.sample.name;
    std::vector<Microbatches> examined;
    for (const std::size_t r : assignment.examined) examined.push_back(assignment.microbatches[r]);
    all.run = pipelined_opponent(*all.ways, all.baselines, examined);
    return all;
}

// All replicas of a plan, as far as they are remembered: of many, those that are examined and the slowest of the
// others.
class PlannedReplicas {
public:
    PlannedReplicas(const AllReplicas& all, const std::vector<std::size_t>& numbers, const OnReplica& on_replica)
        : all_(all), numbers_(numbers), on_replica_(on_replica), replicas_(numbers.size()), times_(numbers.size()) {}

    void plan(const Executor& execute, const Time& time, double part) {
        std::vector<std::size_t> places(numbers_.size());
        std::iota(places.begin(), places.end(), std::size_t{0});
        const auto work = [&](std::size_t place, const Executor& on, const Time& mine) {
            const Time shown = told(mine, all_.wanted.on_doing, {"replica", place + 1, numbers_.size(), {}});
            keep(place, plan_replica(all_, numbers_[place], on, shown));
        };
        for_replicas(places, work, execute, time, part);
    }

    // Those that are replayed under perturbed costs: the first of those that are examined. None where time is short and
    // they take some.
    std::vector<const ScheduledStep*> replayed(const Time& time) const {
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

    const std::vector<ReplicaTimes>& times() const { return times_; }
    const RobustChoice& choice(std::size_t place) const { return replicas_[place].scheduled.choice; }

    std::vector<ReplicaPlan> take() {
        std::vector<ReplicaPlan> plans;
        for (PlannedReplica& one : replicas_) plans.push_back(std::move(one.plan));
        return plans;
    }

private:
    bool is_slower(std::size_t place, std::size_t other) const {
        const auto makespan = [&](std::size_t p) { return replicas_[p].plan.found.replay.makespan; };
        return std::pair(makespan(place), other) > std::pair(makespan(other), place);
    }

    void keep(std::size_t place, PlannedReplica one) {
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

    const AllReplicas& all_;
    const std::vector<std::size_t>& numbers_;
    const OnReplica& on_replica_;
    std::vector<PlannedReplica> replicas_;
    std::vector<ReplicaTimes> times_;
    std::optional<std::size_t> slowest_;  // of those that are not examined
    std::mutex mutex_;
};

// Of the plan's slowest replica; most often one of those that opponents ran on.
std::optional<BaselinePlan> picture(const Beside& beside, const Assignment& assignment, std::size_t slowest) {
    if (!beside.run) return std::nullopt;
    const auto found = std::find(assignment.examined.begin(), assignment.examined.end(), slowest);
    if (found != assignment.examined.end())
        return pictured(*beside.run, static_cast<std::size_t>(found - assignment.examined.begin()));
    const auto run = pipelined_opponent(*beside.ways, beside.baselines, {assignment.microbatches[slowest]});
    return run ? std::optional(pictured(*run, 0)) : std::nullopt;
}

// The opponents' rows go first.
Baselines together(Baselines theirs, const Baselines& policies) {
    theirs.all.insert(theirs.all.end(), policies.all.begin(), policies.all.end());
    theirs.not_applicable.insert(theirs.not_applicable.end(), policies.not_applicable.begin(),
                                 policies.not_applicable.end());
    return theirs;
}

}  // namespace

const TargetPlan& Plan::target(std::string_view name) const {
    const auto found =
        std::find_if(targets.begin(), targets.end(), [&](const TargetPlan& one) { return one.target == name; });
    if (found == targets.end()) fail(ErrorKind::input, "the plan has no schedule of its own for the target '{}'", name);
    return *found;
}

Plan make_plan(const Job& job, const Batch& batch, const Executor& execute, const Time& time, const Wanted& wanted) {
    const Assignment by_load = assign(job, batch, execute);
    const auto numbers = replicas_of(job, wanted);
    PartitionChoice choice = choose_partition(job, batch, quick_choice, execute, {}, wanted.on_doing);
    Beside opponents = beside(job, batch, wanted, by_load, execute, time.fraction(fractions.opponents));
    const Assignment assignment = exchange(job, batch, choice.partition, by_load, execute);

    const double turns = static_cast<double>(std::max<std::size_t>(1, numbers.size() / threads_of(execute)));
    const double part = job.target != targets().front().name ? fractions.asked_target : fractions.target;
    const double for_targets = wanted.targets ? part / (part + (1 - part) * turns) : 0;
    const AllReplicas all{job, wanted, choice.partition, assignment};
    PlannedReplicas replicas(all, numbers, wanted.on_replica);
    replicas.plan(execute, time, 1 - for_targets - (wanted.robustness ? fractions.robustness : 0));

    const Baselines policies = baselines_of(choice.partition, replicas.times());
    std::optional<Robustness> robustness;
    const auto examined = wanted.robustness ? replicas.replayed(time) : std::vector<const ScheduledStep*>();
    if (!examined.empty()) {
        const Draws draws{.seed = job.seed, .memory = usable_bytes(job.setup->cluster)};
        robustness = robustness_of(examined, opponents.run, fastest_policy(policies), draws, execute);
    }
    Plan plan = assemble(job, assignment, replicas.take());
    plan.choice = replicas.choice(plan.slowest);
    plan.baselines = together(std::move(opponents.baselines), policies);
    plan.baselines.pictured = picture(opponents, by_load, plan.replicas[plan.slowest].number);
    plan.robustness = std::move(robustness);
    plan.targets = wanted.targets
                       ? target_plans(job, batch, choice.partition, assignment, execute, time, wanted.on_doing)
                       : no_target_plans("not asked for");
    plan.partition_choice = std::move(choice);
    return plan;
}

std::size_t passes_of(const Request& request, const Wanted& wanted) {
    const auto& layout = request.job.setup->layout;
    const std::size_t all = 2 * request.batch.microbatches.size() * static_cast<std::size_t>(layout.pp);
    return wanted.replicas.empty() ? all : all * wanted.replicas.size() / static_cast<std::size_t>(layout.dp);
}

Plan plan_without_search(const Job& job, const Batch& batch, const Executor& execute, Wanted wanted) {
    wanted.search = wanted.targets = wanted.robustness = wanted.opponents = false;
    std::optional<Plan> fastest;
    std::string why_not;
    for (Partition& partition : partitions_of(job, batch)) {
        Job own = job;
        own.fixed = partition::PartitionFile{std::move(partition), {}};
        try {
            Plan plan = make_plan(own, batch, execute, {}, wanted);
            if (!fastest || plan.makespan < fastest->makespan) fastest = std::move(plan);
        } catch (const Error& error) {
            if (error.kind() != ErrorKind::limit) throw;
            why_not += fmt::format("{}{}", why_not.empty() ? "" : "; ", error.what());
        }
    }
    if (!fastest) fail(ErrorKind::limit, "{}", why_not);
    return std::move(*fastest);
}

std::vector<Cut> steps_of(const Job& job, const Batch& batch, const Partition& partition,
                          const std::vector<std::size_t>& replicas, const Executor& execute) {
    const Assignment assignment = assign(job, batch, execute);
    std::vector<Cut> cuts(replicas.size());
    run_jobs(execute, cuts.size(), [&](std::size_t k) {
        const std::size_t r = replicas[k];
        Step step = build(*job.setup, partition, assignment.microbatches[r], replica_wanted(*job.setup, partition, r));
        if (step.shortage) fail(ErrorKind::limit, "{}", step.shortage->text());
        cuts[k] = std::move(step.cut);
    });
    return cuts;
}

}  // namespace pipeweaver::planner
