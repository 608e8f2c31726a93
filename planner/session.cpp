#include "pipeweaver/planner/session.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "planner/endings.hpp"
#include "planner/job/sample.hpp"
#include "planner/replicas/assemble.hpp"
#include "planner/replicas/for_replicas.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

constexpr const char* no_target_schedule = "not planned: this plan is for one step of a job that runs";

// Replicas of the batch on one partition.
class Prepared {
public:
    Prepared(const Request& request, const Shared& shared, const partition::Partition& partition,
             std::vector<std::size_t> replicas)
        : request_(request), shared_(shared), partition_(partition), numbers_(std::move(replicas)) {}

    // With the quick policies, or with all where none of those applies to all replicas.
    void apply_policies(const Executor& execute) {
        build(quick_policies, search::BoundEffort::quick, execute);
        if (!applies()) build({}, {}, execute);
    }

    bool applies() const {
        return std::all_of(steps.begin(), steps.end(), [](const Step& step) { return step.fastest() != nullptr; });
    }

    bool lack_policies() const {
        return std::any_of(steps.begin(), steps.end(), [](const Step& step) { return step.lacks_policies(); });
    }

    Baselines baselines() const {
        std::vector<ReplicaTimes> times;
        for (const Step& step : steps) times.push_back(times_of(step));
        return baselines_of(partition_, times);
    }

    // As the fastest policy of each runs it. Pre: applies().
    std::vector<ScheduledStep> by_policy() const {
        std::vector<ScheduledStep> chosen;
        for (const Step& step : steps) chosen.push_back(take_policy(step, *step.fastest()));
        return chosen;
    }

    // The places of the replicas, that with the longest makespan first; of those that no policy runs in any order.
    std::vector<std::size_t> longest_first() const {
        std::vector<std::size_t> order(steps.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const auto makespan = [&](std::size_t k) {
            const PolicyRun* fastest = steps[k].fastest();
            return fastest == nullptr ? Duration{} : fastest->makespan();
        };
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return makespan(a) > makespan(b); });
        return order;
    }

    // The replicas' schedules, beside `baselines`.
    Plan plan(std::vector<ScheduledStep> chosen, Baselines baselines) const {
        std::vector<ReplicaPlan> replicas;
        for (std::size_t k = 0; k < chosen.size(); ++k)
            replicas.push_back(finished(shared_, numbers_[k], std::move(chosen[k])));
        Plan plan = assemble(request_, shared_, std::move(replicas));
        plan.baselines = std::move(baselines);
        plan.choice.smallest = plan.makespan;
        plan.targets = no_target_plans(no_target_schedule);
        return plan;
    }

    std::vector<Step> steps;  // of each

private:
    // Without policies all are meant, without a bound's effort that of the replica.
    void build(const std::vector<std::string>& policies, std::optional<search::BoundEffort> bounds,
               const Executor& execute) {
        steps.resize(numbers_.size());
        const bool alone = steps.size() == 1;
        run_jobs(alone ? in_order : execute, steps.size(), [&](std::size_t k) {
            const std::size_t r = numbers_[k];
            PoliciesWanted wanted{.split = request_.split != Split::never, .bound = bounds.value_or(shared_.bounds(r))};
            if (!policies.empty()) wanted.policies = policies;
            steps[k] = evaluate(*request_.setup, partition_, shared_.microbatches[r],
                                replica_wanted(*request_.setup, partition_, r), wanted, alone ? execute : in_order);
        });
    }

    const Request& request_;
    const Shared& shared_;
    const partition::Partition& partition_;
    std::vector<std::size_t> numbers_;
};

[[noreturn]] void does_not_apply(const Prepared& prepared) {
    if (const auto& shortage = prepared.steps.front().shortage) fail(ErrorKind::limit, "{}", shortage->text());
    const Baselines its = prepared.baselines();
    const NotApplicable& first = its.not_applicable.front();
    fail(ErrorKind::limit, "no policy applies: {}: {}: {}", first.partition, first.policy, first.why);
}

// Trying both takes a fraction of the time that is known beforehand: a running job goes on as its first plan did.
Split split_like(const Plan& plan) {
    for (const ReplicaPlan& replica : plan.replicas)
        for (const Task& task : replica.cut.step.problem.tasks)
            if (task.kind == TaskKind::weight_gradient) return Split::always;
    return Split::never;
}

Prepared prepare(const Request& batch, const Shared& shared, const partition::Partition& partition,
                 const std::vector<std::size_t>& replicas, const Executor& execute) {
    Prepared prepared(batch, shared, partition, replicas);
    prepared.apply_policies(execute);
    return prepared;
}

}  // namespace

Session::Session(const Request& first, const Plan& plan)
    : asked_(first), partition_(plan.partition()), order_(StaticOrder::of_plan(plan)) {
    for (const ReplicaPlan& replica : plan.replicas) replicas_.push_back(replica.number);
    forget_batch();
    if (asked_.split == Split::automatic) asked_.split = split_like(plan);
}

Session::Session(const Request& asked, std::vector<std::size_t> replicas, std::optional<StaticOrder> order)
    : asked_(asked), partition_(asked.fixed->partition), replicas_(std::move(replicas)), order_(std::move(order)) {
    PIPEWEAVER_ASSERT(asked.split != Split::automatic);
    forget_batch();
}

void Session::forget_batch() {
    asked_.samples.clear();
    asked_.deferred.clear();
    asked_.microbatches.clear();
}

Request Session::request(std::string name, std::vector<workloads::Sample> samples) const {
    Request request = asked_;
    request.batch = std::move(name);
    request.samples = std::move(samples);
    pack(request);
    return request;
}

std::vector<Cut> Session::steps(const Request& batch, const Executor& execute) const {
    return steps_of(batch, partition_, replicas_, execute);
}

Plan Session::by_policy(const Request& batch, const Executor& execute) const {
    const Shared shared = share(batch, execute);
    const Prepared prepared = prepare(batch, shared, partition_, replicas_, execute);
    if (!prepared.applies()) does_not_apply(prepared);
    return prepared.plan(prepared.by_policy(), prepared.baselines());
}

Plan Session::plan(const Request& batch, const Executor& execute, const Time& time, const OnDraft& draft,
                   Endings* endings) const {
    const auto same = [](std::size_t, const Time& own) { return own; };
    return plan(batch, execute, time, draft, same, endings);
}

Plan Session::plan_again(const Request& batch, const Executor& execute, const Endings& endings) const {
    const auto as_then = [&](std::size_t k, const Time&) { return planner::again(endings[k]); };
    return plan(batch, execute, {}, {}, as_then, nullptr);
}

ScheduleWanted Session::wanted(const Request& batch, const Shared& shared, std::size_t replica,
                               std::size_t tasks) const {
    ScheduleWanted wanted = schedule_wanted(batch);
    // Of a large problem full bounds take as long as a dozen schedules.
    const bool full = effort_of(tasks, 1).full_bounds_first;
    wanted.bounds = full ? shared.bounds(replica) : search::BoundEffort::quick;
    // A search of whole backwards finds its bounds itself.
    wanted.policy_bounds = batch.split == Split::never ? search::BoundEffort::quick : wanted.bounds;
    wanted.problems = static_cast<std::size_t>(batch.setup->layout.dp);
    if (order_) wanted.more = [this](const StepProblem& step) { return order_->carried(step); };
    return wanted;
}

Plan Session::plan(const Request& batch, const Executor& execute, const Time& time, const OnDraft& draft,
                   const std::function<Time(std::size_t, const Time&)>& of_replica, Endings* endings) const {
    const Shared shared = share(batch, execute);
    Prepared prepared = prepare(batch, shared, partition_, replicas_, execute);
    const Baselines quick = prepared.baselines();
    if (draft && prepared.applies()) draft(prepared.plan(prepared.by_policy(), quick));
    const auto order = prepared.longest_first();
    std::vector<ScheduledStep> chosen(replicas_.size());
    Endings ended(replicas_.size());
    const auto schedule = [&](std::size_t k, const Executor& on, const Time& mine) {
        Step& step = prepared.steps[k];
        const bool drafted = step.fastest() != nullptr;
        Stops stops;
        const auto asked = wanted(batch, shared, replicas_[k], std::max<std::size_t>(1, step.tasks()));
        chosen[k] = schedule_step(step, asked, on, counted(of_replica(k, mine), stops));
        chosen[k].require_schedule();
        step.policies = chosen[k].known.policies;
        step.bound = chosen[k].known.bound;
        if (!drafted || !step.lacks_policies()) ended[k] = std::move(stops);
    };
    for_replicas(order, schedule, execute, time, 1);
    if (endings != nullptr) *endings = std::move(ended);
    return prepared.plan(std::move(chosen), prepared.lack_policies() ? quick : prepared.baselines());
}

}  // namespace pipeweaver::planner
