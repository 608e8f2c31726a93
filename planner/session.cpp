#include "pipeweaver/planner/session.hpp"

#include "pipeweaver/base/error.hpp"
#include "planner/assemble.hpp"
#include "planner/choose/for_replicas.hpp"

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

    Plan plan(const Request& request, const Shared& shared, std::vector<Compared> chosen) const {
        std::vector<ReplicaPlan> replicas;
        for (std::size_t k = 0; k < chosen.size(); ++k)
            replicas.push_back(finished(shared, numbers[k], std::move(chosen[k])));
        Plan plan = assemble(request, shared, std::move(replicas));
        plan.baselines = baselines();
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
    Plan plan = fastest->plan(request, shared, std::move(*chosen));
    plan.baselines = together(prepared);
    return plan;
}

Session::Session(const Request& first, const Plan& plan)
    : asked_(first), partition_(plan.partition()), order_(StaticOrder::of_plan(plan)) {
    for (const ReplicaPlan& replica : plan.replicas) replicas_.push_back(replica.number);
    asked_.samples.clear();
    asked_.deferred.clear();
    asked_.microbatches.clear();
    if (asked_.split == Split::automatic) asked_.split = split_like(plan);
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

// All policies and the plan's bounds, then the search; else the fastest policy as it is.
Compared search_one(Compared& prepared, const Request& batch, search::BoundEffort bounds, const Executor& execute,
                    const Allowance& allowance, const StaticOrder* order) {
    if (prepared.known.shortage) fail(ErrorKind::limit, "{}", prepared.known.shortage->text());
    // A search of whole backwards finds its bounds itself.
    const bool whole = batch.split == Split::never;
    EvaluationWanted wanted{.split = !whole, .bound = whole ? search::BoundEffort::quick : bounds};
    wanted.keep_going = allowance(policies_share);
    judge(prepared.known, wanted, execute);
    Compared known = prepared;
    if (const PolicyRun* fastest = prepared.known.fastest()) take(known, *fastest);
    const Limits within = limits(allowance, 1);
    if (known.found.schedule && !may_search(within.all)) return known;
    ChoiceRule rule;
    rule.most = 2;  // as few as a rule has: alternatives would only be compared under wrong costs
    Compared searched = prepared;
    SearchWanted how{.rule = rule, .bounds = bounds};
    if (order != nullptr) how.more = [&](const StepProblem& step) { return order->carried(step); };
    search_in(searched, batch, how, execute, within);
    const search::Found& found = searched.found;
    if (!found.schedule && !known.found.schedule)
        fail(ErrorKind::limit, "{}: {}", searched.partition().name, found.why_not);
    const bool better =
        found.schedule && (!known.found.schedule || found.replay.makespan <= known.found.replay.makespan);
    return better ? std::move(searched) : std::move(known);
}

}  // namespace

Plan Session::plan(const Request& batch, const Executor& execute, const Allowance& allowance,
                   const OnDraft& draft) const {
    const Shared shared = share(batch, execute);
    Prepared prepared(batch, shared, partition_, replicas_, draft_policies, execute, search::BoundEffort::quick);
    auto drafted = prepared.by_policy({});
    if (!drafted) {
        prepared = Prepared(batch, shared, partition_, replicas_, {}, execute);
        drafted = prepared.by_policy({});
    }
    if (draft && drafted) draft(prepared.plan(batch, shared, *drafted));
    const auto order = longest_first(drafted ? *drafted : prepared.compared);
    std::vector<Compared> chosen(replicas_.size());
    const auto search = [&](std::size_t k, const Executor& on, const Allowance& mine) {
        chosen[k] =
            search_one(prepared.compared[k], batch, shared.bounds(replicas_[k]), on, mine, order_ ? &*order_ : nullptr);
    };
    for_replicas(order, search, execute, allowance, 1);
    return prepared.plan(batch, shared, std::move(chosen));
}

}  // namespace pipeweaver::planner
