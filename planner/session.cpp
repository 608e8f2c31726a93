#include "pipeweaver/planner/session.hpp"

#include "pipeweaver/base/error.hpp"
#include "planner/assemble.hpp"
#include "planner/choose/replica_search.hpp"
#include "planner/choose/selection.hpp"

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

// Fills in `found` as if a search had found the policy's schedule.
void take(Compared& compared, const PolicyRun& run) {
    if (run.on_split) compared.parts = split_step(compared.known.cut.step);
    search::PolicyResult result = run.result;
    result.replay = replay_on_ports(compared.searched(), *result.schedule).replay;
    compared.found = search::as_found(run.policy, std::move(result), compared.known.bound);
}

// One partition of every replica as the policy runs it; none: it does not apply on all.
std::optional<std::vector<Compared>> by_policy(const Comparison& compared, std::size_t partition,
                                               std::string_view policy) {
    for (const auto& replica : compared)
        if (run_of(replica[partition], policy) == nullptr) return std::nullopt;
    std::vector<Compared> chosen;
    for (const auto& replica : compared) {
        chosen.push_back(replica[partition]);
        take(chosen.back(), *run_of(replica[partition], policy));
    }
    return chosen;
}

Duration slowest(const Comparison& compared, std::size_t partition, std::string_view policy) {
    Duration most{};
    for (const auto& replica : compared) {
        const PolicyRun* run = run_of(replica[partition], policy);
        if (run == nullptr) return Duration::max();
        most = std::max(most, run->makespan());
    }
    return most;
}

[[noreturn]] void does_not_apply(const Comparison& compared, const Baselines& baselines, std::string_view policy) {
    for (const Compared& one : compared.front())
        if (one.known.shortage && policy.empty()) fail(ErrorKind::limit, "{}", one.known.shortage->text());
    std::string why;
    for (const NotApplicable& reason : baselines.not_applicable)
        if (reason.policy == policy || (policy.empty() && why.empty()))
            why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", reason.partition, reason.why);
    fail(ErrorKind::limit, "the policy '{}' does not apply: {}", policy, why);
}

// The batch shared out, and every partition with every policy.
struct Prepared {
    Prepared(const Request& request, const Scope& scope, const Executor& execute)
        : shared(share(request, execute)),
          compared(compare(request, partitions_of(request, scope), shared.microbatches, scope.policies, execute)),
          baselines(baselines_of(compared, scope.policies)) {}

    Plan plan(const Request& request, std::vector<Compared> chosen) const {
        Plan plan = assemble(request, shared, std::move(chosen));
        plan.baselines = baselines;
        plan.choice.smallest = plan.makespan;
        plan.targets = no_target_plans(no_target_schedule);
        return plan;
    }

    Shared shared;
    Comparison compared;
    Baselines baselines;
};

// The replicas, that with the longest makespan first.
std::vector<std::size_t> longest_first(const std::vector<Compared>& chosen) {
    std::vector<std::size_t> order(chosen.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return chosen[a].found.replay.makespan > chosen[b].found.replay.makespan;
    });
    return order;
}

// Whether a search may begin: asked as searches ask, before anything is found.
bool may_search(const search::KeepGoing& keep_going) { return !keep_going || !keep_going({}); }

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
    const Prepared prepared(request, scope, execute);
    std::size_t best = 0;
    for (std::size_t p = 1; p < prepared.compared.front().size(); ++p)
        if (slowest(prepared.compared, p, policy) < slowest(prepared.compared, best, policy)) best = p;
    auto chosen = by_policy(prepared.compared, best, policy);
    if (!chosen) does_not_apply(prepared.compared, prepared.baselines, policy);
    return prepared.plan(request, std::move(*chosen));
}

Session::Session(const Request& first, const Plan& plan) : asked_(first), partition_(plan.partition()) {
    asked_.samples.clear();
    asked_.microbatches.clear();
    if (asked_.split == Split::automatic) asked_.split = split_like(plan);
}

Request Session::request(std::string name, std::vector<workloads::Sample> samples) const {
    Request request = asked_;
    request.batch = std::move(name);
    request.samples = std::move(samples);
    request.microbatches = workloads::pack(request.samples, model());
    return request;
}

std::vector<Cut> Session::steps(const Request& batch, const Executor& execute) const {
    const Shared shared = share(batch, execute);
    std::vector<Cut> cuts(shared.microbatches.size());
    run_jobs(execute, cuts.size(), [&](std::size_t r) {
        auto known = build(*batch.setup, partition_, partition::units(partition_, model(), shared.microbatches[r]),
                           {.name = problem_name(*batch.setup, partition_, r), .replica = r});
        if (known.shortage) fail(ErrorKind::limit, "{}", known.shortage->text());
        cuts[r] = std::move(known.cut);
    });
    return cuts;
}

Plan Session::plan(const Request& batch, const Executor& execute, const Allowance& allowance,
                   const OnDraft& draft) const {
    const Prepared prepared(batch, {.partitions = {partition_}}, execute);
    if (draft)
        if (auto drafted = by_policy(prepared.compared, 0, {})) draft(prepared.plan(batch, std::move(*drafted)));
    auto chosen = by_policy(prepared.compared, 0, {});
    if (!chosen) {
        chosen.emplace();
        for (const auto& replica : prepared.compared) chosen->push_back(replica.front());
    }
    ChoiceRule rule;
    rule.most = 2;  // as few as a rule has: alternatives would only be compared under wrong costs
    const auto search = [&](std::size_t r, const Executor& on, const Limits& within) {
        Compared& known = (*chosen)[r];
        if (known.known.shortage) fail(ErrorKind::limit, "{}", known.known.shortage->text());
        if (known.found.schedule && !may_search(within.all)) return;
        Compared searched = prepared.compared[r].front();
        search_in(searched, batch, {.rule = rule, .bounds = bounds_of(chosen->size())}, on, within);
        const search::Found& found = searched.found;
        if (!found.schedule && !known.found.schedule) fail(ErrorKind::limit, "{}: {}", partition_.name, found.why_not);
        const bool better =
            found.schedule && (!known.found.schedule || found.replay.makespan <= known.found.replay.makespan);
        if (better) known = std::move(searched);
    };
    search_replicas(longest_first(*chosen), search, execute, allowance, 1);
    return prepared.plan(batch, std::move(*chosen));
}

}  // namespace pipeweaver::planner
