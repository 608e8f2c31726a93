#include "pipeweaver/planner/online.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/search/policies.hpp"
#include "planner/assemble.hpp"
#include "planner/opponents.hpp"
#include "planner/selection.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

constexpr const char* no_torch_schedule = "not planned: this plan is for one step of a job that runs";

// The place of the policy among the baselines, of the fastest where none is named; nothing: it does not apply.
std::optional<std::size_t> place_of(const Compared& compared, std::string_view policy) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < compared.baselines.size(); ++i) {
        const Baseline& one = compared.baselines[i];
        if (!policy.empty() && one.policy != policy) continue;
        if (!best || one.makespan < compared.baselines[*best].makespan) best = i;
    }
    return best;
}

// Fills in `found` as if a search had found the baseline.
void take(Compared& compared, std::size_t place) {
    const Baseline& baseline = compared.baselines[place];
    if (compared.split[place]) compared.parts = split_step(compared.candidate.step);
    search::Found& found = compared.found;
    found.schedule = compared.schedules[place];
    found.replay = replay(compared.searched().problem, *found.schedule);
    found.bound = compared.bound.value;
    found.bound_name = compared.bound.name;
    found.strategy = baseline.policy;
    if (found.replay.makespan == found.bound) found.stop_reason = StopReason::optimal;
    found.first = search::Known{*found.schedule, found.replay.makespan, found.strategy};
    found.history = {{0, 0, found.replay.makespan, found.bound, found.strategy}};
}

// One partition of every replica as the policy runs it; nothing: it does not apply on all.
std::optional<std::vector<Compared>> by_policy(const Comparison& compared, std::size_t partition,
                                               std::string_view policy) {
    std::vector<Compared> chosen;
    for (const auto& replica : compared) {
        const auto place = place_of(replica[partition], policy);
        if (!place) return std::nullopt;
        chosen.push_back(replica[partition]);
        take(chosen.back(), *place);
    }
    return chosen;
}

Duration slowest(const std::vector<Compared>& chosen) {
    Duration most{};
    for (const Compared& one : chosen) most = std::max(most, one.found.replay.makespan);
    return most;
}

[[noreturn]] void does_not_apply(const Comparison& compared, std::string_view policy) {
    std::string why;
    for (const Compared& one : compared.front()) {
        if (one.refused && policy.empty()) throw *one.refused;
        for (const NotApplicable& reason : one.not_applicable)
            if (reason.policy == policy || (policy.empty() && why.empty()))
                why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", reason.partition, reason.why);
    }
    fail(ErrorKind::limit, "the policy '{}' does not apply: {}", policy, why);
}

void require_known(std::string_view policy) {
    std::vector<std::string> names;
    for (const auto& one : search::policies()) names.push_back(one.name);
    if (!policy.empty() && std::find(names.begin(), names.end(), policy) == names.end())
        fail(ErrorKind::input, "{}", unknown("policy", policy, names));
}

// The batch shared out, and every partition with every policy.
struct Prepared {
    Prepared(const Request& request, const costdb::CostDatabase& costs, const Executor& execute,
             const std::optional<partition::Partition>& partition)
        : workload{&request.model, &request.cluster, &costs, request.layout, &request.microbatches},
          shared(share(request, workload)) {
        const auto all = partition ? std::vector{*partition} : partitions(request, workload);
        compared = compare_all(request, costs, all, parts_of(request, shared.shares), execute);
        merge_baselines(compared, known);
        known.in_situ = emulator::in_situ_factors(costs, request.cluster.device);
        known.torch.why_not = no_torch_schedule;
    }

    Plan plan(const Request& request, std::vector<Compared> chosen) const {
        Plan plan = assemble(request, shared, std::move(chosen), known);
        plan.best_chain = best_chain(compared[plan.slowest], plan.baselines);
        plan.choice.smallest = plan.makespan;
        return plan;
    }

    partition::Workload workload;
    Shared shared;
    Comparison compared;
    Plan known;  // what it is compared with
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

}  // namespace

Plan plan_by_policy(const Request& request, const costdb::CostDatabase& costs, const Executor& execute,
                    std::string_view policy, const std::optional<partition::Partition>& partition) {
    require_known(policy);
    const Prepared prepared(request, costs, execute, partition);
    std::optional<std::vector<Compared>> best;
    for (std::size_t p = 0; p < prepared.compared.front().size(); ++p) {
        auto chosen = by_policy(prepared.compared, p, policy);
        if (chosen && (!best || slowest(*chosen) < slowest(*best))) best = std::move(chosen);
    }
    if (!best) does_not_apply(prepared.compared, policy);
    return prepared.plan(request, std::move(*best));
}

Split split_like(const Plan& plan) {
    for (const ReplicaPlan& replica : plan.replicas)
        for (const Task& task : replica.candidate.step.problem.tasks)
            if (task.kind == TaskKind::weight_gradient) return Split::always;
    return Split::never;
}

Plan plan_online(const Request& request, const partition::Partition& partition, const costdb::CostDatabase& costs,
                 const Executor& execute, const Allowance& allowance, const OnDraft& draft) {
    Prepared prepared(request, costs, execute, partition);
    auto chosen = by_policy(prepared.compared, 0, {});
    if (chosen && draft) draft(prepared.plan(request, *chosen));
    if (!chosen) {
        chosen.emplace();
        for (const auto& replica : prepared.compared) chosen->push_back(replica.front());
    }
    ChoiceRule rule;
    rule.most = 2;  // as few as a rule has: schedules near the best would only be compared under wrong costs
    const double share = 1.0 / static_cast<double>(chosen->size());
    for (const std::size_t r : longest_first(*chosen)) {
        Compared& known = (*chosen)[r];
        const Limits most = limits(allowance, share);
        if (known.refused) throw *known.refused;
        if (known.found.schedule && !may_search(most.all)) continue;
        Compared searched = prepared.compared[r].front();
        search_in(searched, request, rule, execute, most);
        const search::Found& found = searched.found;
        if (!found.schedule && !known.found.schedule) fail(ErrorKind::limit, "{}: {}", partition.name, found.why_not);
        const bool better =
            found.schedule && (!known.found.schedule || found.replay.makespan <= known.found.replay.makespan);
        if (better) known = std::move(searched);
    }
    return prepared.plan(request, std::move(*chosen));
}

}  // namespace pipeweaver::planner
