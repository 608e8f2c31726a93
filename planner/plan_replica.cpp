#include "planner/plan_replica.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/static_order.hpp"
#include "planner/choose/lower_peak.hpp"
#include "planner/choose/selection.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

constexpr double search_share = 0.98;  // the rest is for a lower peak, which seldom needs it

std::vector<Schedule> carried_orders(const std::vector<const StaticOrder*>& orders, const StepProblem& step) {
    std::vector<Schedule> all;
    for (const StaticOrder* order : orders)
        for (Schedule& one : order->carried(step)) all.push_back(std::move(one));
    return all;
}

SearchWanted search_wanted(const AllReplicas& all, search::BoundEffort bounds) {
    SearchWanted wanted{choice_rule(all.request.robust), {}, bounds};
    if (!all.scope.orders.empty())
        wanted.more = [&all](const StepProblem& step) { return carried_orders(all.scope.orders, step); };
    return wanted;
}

void require_schedule(const Compared& compared) {
    if (compared.known.shortage) fail(ErrorKind::limit, "{}", compared.known.shortage->text());
    if (!compared.found.schedule) fail(ErrorKind::limit, "{}: {}", compared.partition().name, compared.found.why_not);
}

}  // namespace

ReplicaPlan finished(const Shared& shared, std::size_t number, Compared searched) {
    ReplicaPlan replica;
    replica.number = number;
    replica.judged = shared.judges(number);
    replica.microbatches = shared.shares[number];
    replica.cut = std::move(searched.known.cut);
    replica.found = std::move(searched.found);
    if (const auto& split = searched.parts) replica.cut.step = join_needless(replica.cut.step, *split, replica.found);
    replica.waits = set_lags(replica.cut.step, *replica.found.schedule);
    replica.optimizer = replica.cut.step.optimizer;
    replica.model_flops = replica.cut.step.model_flops;
    add_shares(replica.cut.step, *replica.found.schedule, replica.shares);
    const auto& pairs = replica.cut.step.problem.pairs;
    replica.backwards = pairs.size();
    replica.split_backwards = static_cast<std::size_t>(
        std::count_if(pairs.begin(), pairs.end(), [](const Pair& pair) { return pair.weight.has_value(); }));
    return replica;
}

PlannedReplica plan_replica(const AllReplicas& all, std::size_t number, const Executor& execute,
                            const Allowance& allowance) {
    const Limits search = limits(allowance, search_share);
    const search::KeepGoing whole = allowance(1);
    const Request& request = all.request;
    const SearchWanted wanted = search_wanted(all, all.shared.bounds(number));
    PlannedReplica one;
    one.searched = compare(request, all.partition, {number, &all.shared.microbatches[number]}, all.scope.policies,
                           wanted.bounds, execute, search.all);
    if (!one.searched.known.shortage) {
        const PolicyRun* fastest = one.searched.known.fastest();
        if (fastest != nullptr && !may_search(search.all))
            take(one.searched, *fastest);
        else
            search_in(one.searched, request, wanted, execute, search);
    }
    require_schedule(one.searched);
    const PolicyRun* fastest = one.searched.known.fastest();
    const auto limit = fastest == nullptr ? std::nullopt : std::optional(fastest->makespan());
    search::Found& found = one.searched.found;
    one.choice = choose(one.searched.searched(), found, limit, wanted.rule, request.seed, execute);
    const search::Options options{"default", request.seed, request.max_rounds, {}, {}, {}};
    lower_peak(one.searched.searched(), found, options, wanted.rule, execute, whole);
    one.choice.smallest = std::min(one.choice.smallest, found.replay.makespan);  // a lower peak may be shorter, too
    one.times = times_of(one.searched.known);
    one.plan = finished(all.shared, number, one.searched);
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
