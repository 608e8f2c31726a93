#include "pipeweaver/planner/plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/ladder.hpp"
#include "pipeweaver/planner/partition_choice.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "planner/job/sample.hpp"
#include "planner/replicas/assignment.hpp"
#include "planner/replicas/plan_replica.hpp"
#include "planner/targets/target_plan.hpp"
#include "planner/way/run.hpp"
#include "planner/way/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Partition;

namespace {

// How many were left out for lack of time.
std::size_t untried(const Baselines& baselines) {
    const auto& refused = baselines.not_applicable;
    return static_cast<std::size_t>(std::count_if(refused.begin(), refused.end(),
                                                  [](const NotApplicable& one) { return one.why == no_time_left; }));
}

// What the plan is held against, known before it is made: the opponents on the replicas that are examined.
struct Beside {
    Baselines baselines;
    std::optional<OpponentRun> run;
    std::optional<Opponents> ways;
    Ladder launched{};  // the rungs that flags launch
};

// Those that were chosen before; null: none were.
const Opponents* known_opponents(const Wanted& wanted) {
    return wanted.start ? &wanted.start->opponents : wanted.known_opponents;
}

Beside beside(const Job& job, const Batch& batch, const Wanted& wanted, const Assignment& assignment,
              const Executor& execute, const Time& time) {
    Beside all;
    if (!wanted.opponents) return all;
    const Executor telling = told(execute, wanted.on_doing, doing::opponents);
    const Opponents* const known = known_opponents(wanted);
    all.ways = known ? *known : choose_opponents(job, batch, telling, time);
    if (all.ways->ways.empty()) {
        all.baselines.not_applicable = all.ways->not_applicable;
        return all;
    }
    all.baselines = run_opponents(*all.ways, job, batch, telling, time);
    all.baselines.chosen_on = job.sample.name;
    all.run =
        pipelined_opponent(target(job.target), *all.ways, all.baselines, assignment.microbatches, assignment.examined);
    return all;
}

// What is left of the time then is for what must be done of every replica.
Beside held_against(const Job& job, const Batch& batch, const Wanted& wanted, const Assignment& assignment,
                    const Executor& execute, const Time& time) {
    const Opponents* const chosen = known_opponents(wanted);
    const Way* const like = chosen == nullptr ? nullptr : first_launched(*chosen, job);
    Beside all = beside(job, batch, wanted, assignment, execute,
                        time_for_opponents(job, batch, execute, time, runs_to_launch, like));
    if (wanted.start && wanted.opponents) {
        all.launched = launched_rungs(*wanted.start, all.baselines, execute);
        if (wanted.on_ladder) wanted.on_ladder(all.launched);
    }
    return all;
}

// Whether the job's chunks were built for a cut of their own.
bool keeps_cut(const Job& job) { return job.fixed && job.fixed->is_read; }

// What a target may run: the plan's own partition where the target runs it or it was asked for, else what its users
// would cut, each batch of the sample as it would run. A chain of many small stages is seldom what a target of
// one chain is fastest with.
std::vector<Partition> cuts_for(const Job& job, const Batch& batch, const Target& target, const Partition& own) {
    const bool one_chain = own.chains.size() == 1 && phase_modules(own).empty();
    if (!target.one_chain || one_chain || keeps_cut(job) || !job.partition.empty()) return {own};
    const Microbatches all = together(as_run_by(target, job.setup->layout, batches_of(job, batch)));
    return partition::partitions_for(partition::Use::framework, *job.setup, all);
}

// And what is fastest of all that the job's target launches by itself.
std::vector<Partition> target_partitions(const Job& job, const Batch& batch, const Target& target, const Partition& own,
                                         const Beside& beside) {
    auto all = cuts_for(job, batch, target, own);
    if (job.target != target.name || keeps_cut(job) || !job.partition.empty()) return all;
    for (const Baseline& row : beside.baselines.all)
        if (row.launched && row.on_own_ranks) {
            all.push_back(beside.ways->ways[*row.way].partition);
            break;
        }
    return all;
}

TargetPlan not_asked_for(const Target& target) {
    return no_target_plan(target, fmt::format("not asked for: add --also {}", target.option));
}

// Makes one for each target; returns why the job's own has no schedule, if so.
std::string make_target_plans(const Job& job, const Batch& batch, const Wanted& wanted, const Partition& own,
                              const Beside& beside, const Assignment& assignment, const Executor& execute,
                              const Time& time, std::vector<TargetPlan>& plans) {
    if (!wanted.targets) {
        plans = no_target_plans("not asked for");
        return {};
    }
    for (const Target& one : targets()) {
        if (!has_own_plan(one)) continue;
        if (!has_schedule_for(job, one.name)) {
            plans.push_back(not_asked_for(one));
            continue;
        }
        plans.push_back(make_target_plan(job, one, target_partitions(job, batch, one, own, beside),
                                         assignment.microbatches, execute,
                                         told(time, wanted.on_doing, {one.name, 0, 0, {}})));
        TargetPlan& made = plans.back();
        made.microbatches = assignment.shares[made.replica];
        if (one.fixed_shapes) made.microbatches.resize(made.padding.microbatches.size(), made.microbatches.back());
        if (job.target == one.name && !made.found.schedule) return fmt::format("{}: {}", one.name, made.why_not);
    }
    return {};
}

// Of the plan's slowest replica; most often one of those that opponents ran on.
std::optional<BaselinePlan> picture(const Target& runs, const Beside& beside, const Assignment& assignment,
                                    std::size_t slowest) {
    if (!beside.run) return std::nullopt;
    const auto found = std::find(assignment.examined.begin(), assignment.examined.end(), slowest);
    if (found != assignment.examined.end())
        return pictured(*beside.run, static_cast<std::size_t>(found - assignment.examined.begin()));
    const auto run = pipelined_opponent(runs, *beside.ways, beside.baselines, assignment.microbatches, {slowest});
    return run ? std::optional(pictured(*run, 0)) : std::nullopt;
}

// The way with what all replicas fit with: one with less to do may hold a larger microbatch than those that it was
// judged on. None: nothing does, or it is no faster than `step` so.
std::optional<OpponentWay> faster_on_all(OpponentWay way, std::optional<Duration> step, const Job& job,
                                         const Batch& batch, const Executor& execute) {
    const OpponentResult ran = run_on_all(way, job, batch, execute);
    if (!ran.runs() || (step && ran.step >= *step)) return std::nullopt;
    way.recompute = ran.recompute;
    return way;
}

// A replica as the way runs it. Pre: it fits with the way's recomputation.
PlannedReplica as_opponent(const AllReplicas& all, const Way& way, const Target& runs, std::size_t number,
                           const Microbatches& as_run) {
    const Job& job = all.job;
    StepWanted wanted = replica_wanted(*job.setup, all.partition, number);
    wanted.target = &runs;
    Step step = build(*job.setup, all.partition, as_run, wanted);
    if (step.shortage) fail(ErrorKind::limit, "{}", step.shortage->text());
    auto run = StepUnderPolicy(step.cut.step, way.policy, all.partition.modes).run(*way.recompute);
    if (!run) fail(ErrorKind::limit, "{}: replica {} does not fit", way.name, number);
    if (job.split != Split::never) step.split = split_step(step.cut.step);
    step.bound = bound_of(step, job.split != Split::never, all.assignment.bounds(number));
    PolicyRun policy{.policy = way.policy, .result = {std::move(run->schedule), {}, {}}};
    PortReplay in_full = replay_in_full(step, false, *policy.result.schedule);
    policy.result.replay = std::move(in_full.replay);
    policy.waits = in_full.waits;
    ScheduledStep scheduled = take_policy(step, policy);
    scheduled.step.policies = {std::move(policy)};
    PlannedReplica one = planned(all, number, std::move(scheduled));
    // What is repeated to pad a microbatch is no sample of the plan's.
    if (runs.fixed_shapes)
        one.plan.cut.units = partition::units(all.partition, job.setup->model, all.assignment.microbatches[number]);
    return one;
}

// A plan that is an opponent's: its cut, order and recomputation, on every replica, without a search. Pre: all of the
// assignment fit with its recomputation (run_on_all()); job, wanted and assignment outlive it.
struct OpponentPlan {
    OpponentPlan(const Job& job, const Wanted& wanted, const Way& way, const Assignment& assignment,
                 const Executor& execute)
        : partition(way.partition),
          numbers(replicas_of(job, {})),
          all{job, wanted, partition, assignment},
          replicas(all, numbers) {
        const WayOfTarget said = WayOfTarget::as_said(way, target(job.target));
        partition.modes = said.settings;
        const auto as_run = some_as_run(way, *said.target, assignment.microbatches, numbers);
        replicas.plan(execute, {}, 1, [&](const auto&, std::size_t number, const Executor&, const Time&) {
            return as_opponent(all, way, *said.target, number, as_run[number]);
        });
    }

    Partition partition;  // its modes are the recomputations that the way may take
    std::vector<std::size_t> numbers;
    AllReplicas all;
    PlannedReplicas replicas;
};

// Whether executors of action lists know what it recomputes, which may be a launched word alone.
bool is_for_passes(const Baseline& row) {
    if (!row.recompute) return true;
    const auto said = said_in(*row.recompute);
    return std::all_of(said.begin(), said.end(), [](Recompute one) { return is_for_plans(one); });
}

// The fastest opponent that could be the plan of the job: it runs on the plan's own ranks, the job's target can run it,
// and the job keeps no cut. Null: there is none.
const Baseline* may_be_plan(const Beside& beside, const Job& job) {
    const Target& runs = target(job.target);
    // Those that were padded would be other steps as the plan's.
    if (keeps_cut(job) || runs.fixed_shapes) return nullptr;
    const auto& rows = beside.baselines.all;
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const Baseline& one) {
        const bool can_run = !runs.action_lists || (one.launched && is_for_passes(one));
        return one.is_opponent && one.on_own_ranks && can_run;
    });
    return row == rows.end() ? nullptr : &*row;
}

// The same, if it is faster than `step`.
std::optional<OpponentWay> faster_way(const Beside& beside, Duration step, const Job& job, const Batch& batch,
                                      const Executor& execute) {
    const Baseline* const row = may_be_plan(beside, job);
    return row == nullptr || row->step >= step ? std::nullopt
                                               : faster_on_all(way_of(*row, *beside.ways), step, job, batch, execute);
}

// What must be left of the time when replicas have been searched.
AfterSearch after_search(const Job& job, const Batch& batch, const Wanted& wanted, const Beside& beside, bool plans_all,
                         const Executor& execute, const Time& time) {
    if (!wanted.opponents) return {};
    const Baseline* const row = plans_all ? may_be_plan(beside, job) : nullptr;
    const auto way = row == nullptr ? std::nullopt : std::optional(way_of(*row, *beside.ways));
    return time_after_search(job, batch, way ? &*way : nullptr, execute, time);
}

// Of those that there was no time to run on the batch the first that fits all replicas.
std::optional<OpponentWay> untried_way(const Beside& beside, const Job& job, const Batch& batch,
                                       const Executor& execute) {
    if (untried(beside.baselines) == 0) return std::nullopt;
    for (const OpponentWay& way : launched_here(*beside.ways, job).ways)
        if (auto found = faster_on_all(way, {}, job, batch, execute)) return found;
    return std::nullopt;
}

// The fastest that the job's target launches on the plan's ranks, with a recomputation that fits every replica. False:
// it launches nothing there.
bool plan_launched(std::optional<OpponentPlan>& plan, const Job& job, const Batch& batch, const Wanted& wanted,
                   const Beside& beside, const Assignment& assignment, const Executor& execute) {
    const auto plan_by = [&](const std::optional<OpponentWay>& way) {
        if (way) plan.emplace(job, wanted, *way, assignment, execute);
    };
    for (const Baseline& row : beside.baselines.all) {
        if (!row.is_opponent || !row.launched || !row.on_own_ranks) continue;
        const auto best = plan ? std::optional(plan->replicas.step()) : std::nullopt;
        if (best && row.step >= *best) continue;
        plan_by(faster_on_all(way_of(row, *beside.ways), best, job, batch, execute));
    }
    if (!plan) plan_by(untried_way(beside, job, batch, execute));
    return plan.has_value();
}

// The partition, with no more effort than the time allows for so many replicas.
PartitionChoice partition_for(const Job& job, const Batch& batch, const Wanted& wanted, std::size_t replicas,
                              const Executor& execute, const Time& time) {
    ChoiceEffort effort = quick_choice;
    if (time.is_over()) effort.most_tuned = 0;
    if (const auto left = time.fraction(fractions.replicas).left())
        effort.most_tasks_of_replica = static_cast<std::size_t>(*left / time_of_tasks(job, batch, replicas, execute));
    return choose_partition(job, batch, effort, execute,
                            time.fraction(beside_replicas(fractions.partition, job, threads_of(execute))),
                            wanted.on_doing);
}

// Whether what is launched is the plan: no order was asked for, nor a partition of one's own.
bool takes_launched(const Job& job, const Wanted& wanted) {
    return wanted.opponents && wanted.search && !searches_order(job) && !job.fixed && job.partition.empty();
}

// The part of the time that schedules of targets get beside those of so many replicas.
double part_for_targets(const Job& job, const Wanted& wanted, std::size_t threads, std::size_t replicas) {
    if (!wanted.targets) return 0;
    const double turns = static_cast<double>(std::max<std::size_t>(1, replicas / threads));
    const double part = has_own_plan(target(job.target)) ? fractions.asked_target : fractions.target;
    return part / (part + (1 - part) * turns);
}

// How replicas stand up to wrong costs beside what engineers run; none where none was replayed.
std::optional<Robustness> robustness_beside(const Job& job, const std::vector<const ScheduledStep*>& examined,
                                            const Beside& opponents, const Baseline* policy, const Executor& execute) {
    if (examined.empty()) return std::nullopt;
    const Draws draws{.seed = job.seed, .memory = usable_bytes(job.setup->cluster)};
    return robustness_of(examined, opponents.run ? &*opponents.run : nullptr, policy, draws, execute);
}

// The opponents' rows go first.
Baselines together(Baselines theirs, const Baselines& policies) {
    theirs.all.insert(theirs.all.end(), policies.all.begin(), policies.all.end());
    theirs.not_applicable.insert(theirs.not_applicable.end(), policies.not_applicable.begin(),
                                 policies.not_applicable.end());
    return theirs;
}

// The plan that is no more than what its target launches.
Plan launched_plan(const Job& job, const Beside& beside, const Assignment& assignment, PlannedReplicas& replicas) {
    Plan plan = assemble(job, assignment, replicas.take());
    plan.is_opponents = true;
    plan.is_searched = false;
    plan.is_padded = pads(target(job.target), job.setup->layout);
    plan.choice = replicas.choice(plan.slowest);
    plan.ladder = beside.launched;
    plan.baselines = beside.baselines;
    plan.baselines.pictured = picture(target(job.target), beside, assignment, plan.replicas[plan.slowest].number);
    plan.partition_choice.partition = plan.partition();
    plan.partition_choice.chosen_on = beside.baselines.chosen_on;
    for (const Target& one : targets())
        if (has_own_plan(one)) plan.targets.push_back(not_asked_for(one));
    return plan;
}

double part_of(std::string_view what) {
    const auto found =
        std::find_if(parts_of_plan.begin(), parts_of_plan.end(), [&](const Part& one) { return one.what == what; });
    return found == parts_of_plan.end() ? 0 : found->part;
}

void add_known_schedules(std::vector<LeftOut>& all, const Baselines& baselines) {
    const std::size_t left = untried(baselines);
    if (left == 0) return;
    const std::size_t known = baselines.all.size() + left;
    all.push_back({fmt::format("{} of {} known schedules", left, known),
                   part_of(doing::known_schedules) * static_cast<double>(left) / static_cast<double>(known)});
}

void add_rounds(std::vector<LeftOut>& all, const std::vector<ReplicaPlan>& replicas) {
    const auto ended = std::count_if(replicas.begin(), replicas.end(), [](const ReplicaPlan& one) {
        return one.found.stop_reason == schedule::StopReason::budget ||
               one.found.stop_reason == schedule::StopReason::stopped;
    });
    if (ended == 0) return;
    const double part = part_of(doing::replica) * static_cast<double>(ended) / static_cast<double>(replicas.size()) / 2;
    all.push_back({replicas.size() == 1
                       ? "more rounds of the search"
                       : fmt::format("more rounds of the search on {} of {} replicas", ended, replicas.size()),
                   part});
}

// Of the time what ends so much sooner.
Time without(const Time& time, Duration last) { return last > Duration{} ? time.fraction(1, last) : time; }

MadePlan planned_once(const Job& job, const Batch& batch, const Executor& execute, const Time& whole,
                      const Wanted& wanted) {
    const Assignment by_load = assign(job, batch, execute);
    std::optional<Beside> known;
    if (takes_launched(job, wanted)) {
        known = held_against(job, batch, wanted, by_load, execute, whole);
        std::optional<OpponentPlan> theirs;
        if (plan_launched(theirs, job, batch, wanted, *known, by_load, execute))
            return {launched_plan(job, *known, by_load, theirs->replicas), {}};
    }
    const auto numbers = wanted.only_examined ? by_load.examined : replicas_of(job, wanted);
    PartitionChoice choice = partition_for(job, batch, wanted, numbers.size(), execute, whole);
    Beside opponents = known ? std::move(*known) : held_against(job, batch, wanted, by_load, execute, whole);
    const Assignment assignment = exchange(job, batch, choice.partition, by_load, execute);
    const double for_targets = part_for_targets(job, wanted, threads_of(execute), numbers.size());
    const AllReplicas all{job, wanted, choice.partition, assignment};
    const bool plans_all = numbers.size() == by_load.shares.size();
    const AfterSearch after = after_search(job, batch, wanted, opponents, plans_all, execute, whole);
    const Time time = without(whole, after.end);
    PlannedReplicas searched(all, numbers);
    searched.plan(execute, without(time, after.opponent),
                  1 - for_targets - (wanted.robustness ? fractions.robustness : 0));
    if (std::string why_not = searched.why_not(); !why_not.empty()) return {{}, std::move(why_not)};
    const Baselines policies = baselines_of(choice.partition, searched.times());

    // An opponent that is faster than what was found is the plan.
    std::optional<OpponentPlan> theirs;
    if (plans_all)
        if (const auto way = faster_way(opponents, searched.step(), job, batch, execute))
            theirs.emplace(job, wanted, *way, by_load, execute);
    const bool takes_theirs = theirs && theirs->replicas.step() < searched.step();
    PlannedReplicas& replicas = takes_theirs ? theirs->replicas : searched;

    const auto examined = wanted.robustness ? replicas.replayed(time) : std::vector<const ScheduledStep*>();
    auto robustness =
        robustness_beside(job, examined, opponents, takes_theirs ? nullptr : fastest_policy(policies), execute);
    Plan plan = assemble(job, takes_theirs ? by_load : assignment, replicas.take());
    plan.is_opponents = takes_theirs;
    plan.choice = replicas.choice(plan.slowest);
    plan.ladder = opponents.launched;
    plan.baselines = together(opponents.baselines, policies);
    plan.baselines.pictured = picture(target(job.target), opponents, by_load, plan.replicas[plan.slowest].number);
    plan.robustness = std::move(robustness);
    plan.lacks_robustness = wanted.robustness && examined.empty();
    std::string why_not =
        make_target_plans(job, batch, wanted, choice.partition, opponents, assignment, execute, time, plan.targets);
    if (!why_not.empty()) return {{}, std::move(why_not)};
    plan.partition_choice = std::move(choice);
    return {std::move(plan), {}};
}

// As when each is told of as soon as it is planned.
void hand_over(Plan& plan, const OnReplica& on_replica, const Executor& execute) {
    run_jobs(execute, plan.replicas.size(), [&](std::size_t r) {
        ReplicaPlan& replica = plan.replicas[r];
        on_replica(replica);
        if (!replica.examined && r != plan.slowest) let_go(replica);
    });
}

}  // namespace

const TargetPlan& Plan::target(std::string_view name) const {
    const auto found =
        std::find_if(targets.begin(), targets.end(), [&](const TargetPlan& one) { return one.target == name; });
    if (found == targets.end()) fail(ErrorKind::input, "the plan has no schedule of its own for the target '{}'", name);
    return *found;
}

// A wider choice may make a search of so many rounds, or of so much time, find less: both are planned.
MadePlan try_plan(const Job& job, const Batch& batch, const Executor& execute, const Time& time, const Wanted& wanted) {
    const auto kept = keeping_all(job);
    if (!kept) return planned_once(job, batch, execute, time, wanted);
    Wanted both = wanted;
    both.on_replica = {};  // is told of those that are taken
    MadePlan made = planned_once(*kept, batch, execute, time.fraction(0.5), both);
    if (MadePlan offloading = planned_once(job, batch, execute, time, both);
        offloading.plan && (!made.plan || offloading.plan->step < made.plan->step))
        made = std::move(offloading);
    if (made.plan && wanted.on_replica) hand_over(*made.plan, wanted.on_replica, execute);
    return made;
}

Plan make_plan(const Job& job, const Batch& batch, const Executor& execute, const Time& time, const Wanted& wanted) {
    MadePlan made = try_plan(job, batch, execute, time, wanted);
    if (!made.plan) fail(ErrorKind::limit, "{}", made.why_not);
    return std::move(*made.plan);
}

Plan plan_without_search(const Job& job, const Batch& batch, const Executor& execute, Wanted wanted) {
    wanted.search = wanted.targets = wanted.robustness = wanted.opponents = false;
    std::optional<Plan> fastest;
    std::string why_not;
    for (Partition& partition : partitions_of(job, batch)) {
        Job own = job;
        own.fixed = partition::PartitionFile{std::move(partition), {}};
        MadePlan made = try_plan(own, batch, execute, {}, wanted);
        if (!made.plan)
            why_not += fmt::format("{}{}", why_not.empty() ? "" : "; ", made.why_not);
        else if (!fastest || made.plan->makespan < fastest->makespan)
            fastest = std::move(made.plan);
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
        cuts[k] = take_cut(std::move(step));
    });
    return cuts;
}

std::vector<LeftOut> left_out(const Plan& plan) {
    std::vector<LeftOut> all;
    if (plan.ladder.interrupted) all.push_back({"interrupted", 0});
    add_known_schedules(all, plan.baselines);
    for (const std::string& one : plan.ladder.left_out) all.push_back({one, part_of(one)});
    for (const TargetPlan& one : plan.targets)
        if (one.cut_short)
            all.push_back({fmt::format("other partitions for {}", target(one.target).title), fractions.target});
    if (plan.partition_choice.cut_short) all.push_back({"searches of other partitions", part_of(doing::partition) / 2});
    if (plan.lacks_robustness) all.push_back({"replays under wrong costs", fractions.robustness});
    if (plan.is_searched && !plan.is_opponents) add_rounds(all, plan.replicas);
    return all;
}

std::string launched_alone(const Plan& plan) {
    const std::vector<Recompute>& modes = plan.partition().modes;
    const auto found = std::find_if(modes.begin(), modes.end(), [](Recompute one) { return !is_for_plans(one); });
    return found == modes.end() ? "" : name_of(*found);
}

}  // namespace pipeweaver::planner
