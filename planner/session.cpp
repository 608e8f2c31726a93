#include "pipeweaver/planner/session.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "planner/assemble.hpp"
#include "planner/choose/for_replicas.hpp"
#include "planner/endings.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

constexpr const char* no_target_schedule = "not planned: this plan is for one step of a job that runs";

// What the policy makes of it, or the fastest where none is named; null: it does not apply.
const PolicyRun* run_of(const Compared& compared, std::string_view policy) {
    if (policy.empty()) return compared.known.fastest();
    const PolicyRun* run = compared.known.run(policy);
    return run != nullptr && run->result.schedule ? run : nullptr;
}

bool lacks_policies(const Compared& compared) {
    const auto& policies = compared.known.policies;
    return std::any_of(policies.begin(), policies.end(), [](const PolicyRun& run) { return run.left_out; });
}

// What a draft is chosen from: quick, and one of them seldom a tenth behind the best of all policies.
const std::vector<std::string> draft_policies{"dual-queue", "gpipe", "interleaved"};

// Replicas of the batch on one partition, with policies; none: all.
struct Prepared {
    Prepared(const Request& request, const Shared& shared, const partition::Partition& partition,
             std::vector<std::size_t> replicas, const std::vector<std::string>& policies, const Executor& execute,
             std::optional<search::BoundEffort> bounds = {})
        : numbers(std::move(replicas)), compared(numbers.size()) {
        const auto one = [&](std::size_t k) {
            const std::size_t r = numbers[k];
            compared[k] = compare(request, partition, {r, &shared.microbatches[r]}, policies,
                                  bounds.value_or(shared.bounds(r)), compared.size() == 1 ? execute : in_order);
        };
        run_jobs(compared.size() == 1 ? in_order : execute, compared.size(), one);
    }

    Baselines baselines() const {
        std::vector<ReplicaTimes> times;
        for (const Compared& replica : compared) times.push_back(times_of(replica.known));
        return baselines_of(compared.front().partition(), times);
    }

    bool lack_policies() const {
        return std::any_of(compared.begin(), compared.end(), [](const Compared& one) { return lacks_policies(one); });
    }

    // As the policy runs it; none: it does not apply on all.
    std::optional<std::vector<Compared>> by_policy(std::string_view policy) const {
        if (slowest(policy) == Duration::max()) return std::nullopt;
        std::vector<Compared> chosen = compared;
        for (Compared& replica : chosen) take(replica, *run_of(replica, policy));
        return chosen;
    }

    Duration slowest(std::string_view policy) const {
        Duration most{};
        for (const Compared& replica : compared) {
            const PolicyRun* run = run_of(replica, policy);
            if (run == nullptr) return Duration::max();
            most = std::max(most, run->makespan());
        }
        return most;
    }

    // The replicas' schedules, beside `baselines`.
    Plan plan(const Request& request, const Shared& shared, std::vector<Compared> chosen, Baselines baselines) const {
        std::vector<ReplicaPlan> replicas;
        for (std::size_t k = 0; k < chosen.size(); ++k)
            replicas.push_back(finished(shared, numbers[k], std::move(chosen[k])));
        Plan plan = assemble(request, shared, std::move(replicas));
        plan.baselines = std::move(baselines);
        plan.choice.smallest = plan.makespan;
        plan.targets = no_target_plans(no_target_schedule);
        return plan;
    }

    std::vector<std::size_t> numbers;
    std::vector<Compared> compared;  // of each
};

// Of all partitions, in their order.
Baselines together(const std::vector<Prepared>& partitions) {
    Baselines all;
    for (const Prepared& one : partitions) {
        const Baselines its = one.baselines();
        all.all.insert(all.all.end(), its.all.begin(), its.all.end());
        all.not_applicable.insert(all.not_applicable.end(), its.not_applicable.begin(), its.not_applicable.end());
    }
    return all;
}

[[noreturn]] void does_not_apply(const std::vector<Prepared>& partitions, std::string_view policy) {
    std::string why;
    for (const Prepared& one : partitions) {
        const auto& shortage = one.compared.front().known.shortage;
        if (shortage && policy.empty()) fail(ErrorKind::limit, "{}", shortage->text());
        const Baselines its = one.baselines();
        for (const NotApplicable& reason : its.not_applicable)
            if (reason.policy == policy || (policy.empty() && why.empty()))
                why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", reason.partition, reason.why);
    }
    fail(ErrorKind::limit, "the policy '{}' does not apply: {}", policy, why);
}

// The replicas, that with the longest makespan first.
std::vector<std::size_t> longest_first(const std::vector<Compared>& chosen) {
    std::vector<std::size_t> order(chosen.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return chosen[a].found.replay.makespan > chosen[b].found.replay.makespan;
    });
    return order;
}

// Trying both takes a fraction of the time that is known beforehand: a running job goes on as its first plan did.
Split split_like(const Plan& plan) {
    for (const ReplicaPlan& replica : plan.replicas)
        for (const Task& task : replica.cut.step.problem.tasks)
            if (task.kind == TaskKind::weight_gradient) return Split::always;
    return Split::never;
}

}  // namespace

Plan plan_by_policy(const Request& request, const Executor& execute, std::string_view policy, const Scope& scope) {
    if (!policy.empty()) static_cast<void>(search::policy(policy));
    const Shared shared = share(request, execute);
    std::vector<Prepared> prepared;
    for (const auto& partition : partitions_of(request, scope))
        prepared.emplace_back(request, shared, partition, replicas_of(request, scope), scope.policies, execute);
    const auto fastest = std::min_element(prepared.begin(), prepared.end(), [&](const Prepared& a, const Prepared& b) {
        return a.slowest(policy) < b.slowest(policy);
    });
    auto chosen = fastest->by_policy(policy);
    if (!chosen) does_not_apply(prepared, policy);
    return fastest->plan(request, shared, std::move(*chosen), together(prepared));
}

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
    const Shared shared = share(batch, execute);
    std::vector<Cut> cuts(replicas_.size());
    run_jobs(execute, cuts.size(), [&](std::size_t k) {
        const std::size_t r = replicas_[k];
        auto known = build(*batch.setup, partition_, partition::units(partition_, model(), shared.microbatches[r]),
                           {.name = problem_name(*batch.setup, partition_, r), .replica = r});
        if (known.shortage) fail(ErrorKind::limit, "{}", known.shortage->text());
        cuts[k] = std::move(known.cut);
    });
    return cuts;
}

namespace {

struct SearchOne {
    const Request& batch;
    search::BoundEffort bounds;
    const StaticOrder* order;  // to begin with, too; null: none
};

// The fastest policy, as it is.
Compared fastest_policy_of(const Compared& prepared) {
    Compared known = prepared;
    if (const PolicyRun* fastest = prepared.known.fastest()) take(known, *fastest);
    return known;
}

// All policies and the plan's bounds; false: there was no time for all policies.
bool judge_all(Compared& prepared, const SearchOne& how, const Executor& execute, const Time& time) {
    // A search of whole backwards finds its bounds itself.
    const bool whole = how.batch.split == Split::never;
    EvaluationWanted wanted{.split = !whole, .bound = whole ? search::BoundEffort::quick : how.bounds};
    wanted.time = time.fraction(fractions.policies);
    judge(prepared.known, wanted, execute);
    return !lacks_policies(prepared);
}

// The search, or the fastest of all policies as it is. Where there is no time for all of them, the fastest of those
// that were tried before: which others were tried depends on the threads.
Compared search_one(Compared& prepared, const SearchOne& how, const Executor& execute, const Time& given,
                    Ending& ending) {
    if (prepared.known.shortage) fail(ErrorKind::limit, "{}", prepared.known.shortage->text());
    Compared known = fastest_policy_of(prepared);
    Stops stops;
    const Time time = counted(given, stops);
    const bool all = judge_all(prepared, how, execute, time);
    if (!all && known.found.schedule) return known;
    known = fastest_policy_of(prepared);
    const Time within = time.fraction(1);
    if (known.found.schedule && within.is_over()) {
        ending = std::move(stops);
        return known;
    }
    Compared searched = prepared;
    SearchWanted wanted{.rule = no_choice, .bounds = how.bounds};
    if (how.order != nullptr) wanted.more = [&](const StepProblem& step) { return how.order->carried(step); };
    search_in(searched, how.batch, wanted, execute, within);
    ending = std::move(stops);
    const search::Found& found = searched.found;
    if (!found.schedule && !known.found.schedule)
        fail(ErrorKind::limit, "{}: {}", searched.partition().name, found.why_not);
    const bool better =
        found.schedule && (!known.found.schedule || found.replay.makespan <= known.found.replay.makespan);
    return better ? std::move(searched) : std::move(known);
}

// With the quick policies, or with all where none of those applies.
Prepared prepare(const Request& batch, const Shared& shared, const partition::Partition& partition,
                 const std::vector<std::size_t>& replicas, const Executor& execute) {
    Prepared prepared(batch, shared, partition, replicas, draft_policies, execute, search::BoundEffort::quick);
    if (!prepared.by_policy({})) prepared = Prepared(batch, shared, partition, replicas, {}, execute);
    return prepared;
}

}  // namespace

Plan Session::by_policy(const Request& batch, const Executor& execute) const {
    const Shared shared = share(batch, execute);
    const Prepared prepared = prepare(batch, shared, partition_, replicas_, execute);
    auto chosen = prepared.by_policy({});
    if (!chosen) does_not_apply({prepared}, {});
    return prepared.plan(batch, shared, std::move(*chosen), prepared.baselines());
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

Plan Session::plan(const Request& batch, const Executor& execute, const Time& time, const OnDraft& draft,
                   const std::function<Time(std::size_t, const Time&)>& of_replica, Endings* endings) const {
    const Shared shared = share(batch, execute);
    Prepared prepared = prepare(batch, shared, partition_, replicas_, execute);
    const Baselines quick = prepared.baselines();
    const auto drafted = prepared.by_policy({});
    if (draft && drafted) draft(prepared.plan(batch, shared, *drafted, quick));
    const auto order = longest_first(drafted ? *drafted : prepared.compared);
    std::vector<Compared> chosen(replicas_.size());
    Endings ended(replicas_.size());
    const auto search = [&](std::size_t k, const Executor& on, const Time& mine) {
        // Of a large problem full bounds take as long as a dozen schedules.
        const Effort effort = effort_of(prepared.compared[k].known.cut.step.problem.tasks.size(), 1);
        const auto bounds = effort.full_bounds_first ? shared.bounds(replicas_[k]) : search::BoundEffort::quick;
        const SearchOne how{batch, bounds, order_ ? &*order_ : nullptr};
        chosen[k] = search_one(prepared.compared[k], how, on, of_replica(k, mine), ended[k]);
    };
    for_replicas(order, search, execute, time, 1);
    if (endings != nullptr) *endings = std::move(ended);
    return prepared.plan(batch, shared, std::move(chosen), prepared.lack_policies() ? quick : prepared.baselines());
}

}  // namespace pipeweaver::planner
