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

std::vector<Schedule> carried_orders(const std::vector<const StaticOrder*>& orders, const StepProblem& step) {
    std::vector<Schedule> all;
    for (const StaticOrder* order : orders)
        for (Schedule& one : order->carried(step)) all.push_back(std::move(one));
    return all;
}

const ChoiceRule& rule_of(const Request& request) { return request.robust ? robust_rule : usual_rule; }

SearchWanted search_wanted(const AllReplicas& all, search::BoundEffort bounds) {
    SearchWanted wanted{rule_of(all.request), {}, bounds};
    if (!all.scope.orders.empty())
        wanted.more = [&all](const StepProblem& step) { return carried_orders(all.scope.orders, step); };
    return wanted;
}

// Whether two schedules of it may be replayed under wrong costs, a few hundred times: of thousands of GPUs that would take
// longer than the search.
bool worth_judging(const AllReplicas& all, const StepProblem& step, const ChoiceRule& rule) {
    return rule.near(step.problem.tasks.size(), all.shared.shares.size()).most > 0;
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

namespace {

// Its search, where there is time for one; else the fastest policy as it is.
void search_or_take(Compared& compared, const Request& request, const SearchWanted& wanted, const Executor& execute,
                    const Time& time) {
    if (compared.known.shortage) return;
    const PolicyRun* fastest = compared.known.fastest();
    const auto ended = time.stop();
    if (fastest == nullptr || !ended) return search_in(compared, request, wanted, execute, time);
    take(compared, *fastest);
    if (compared.found.stop_reason != StopReason::optimal) compared.found.stop_reason = *ended;
}

// The one of the schedules found that is taken, with a lower peak where that costs nothing.
RobustChoice choose_one(const AllReplicas& all, Compared& compared, const ChoiceRule& rule, const Executor& execute,
                        const Time& time) {
    const Request& request = all.request;
    const PolicyRun* fastest = compared.known.fastest();
    const auto limit = fastest == nullptr ? std::nullopt : std::optional(fastest->makespan());
    RobustChoice choice = choose(compared.searched(), compared.found, limit, rule, request.seed, execute);
    if (worth_judging(all, compared.searched(), rule)) {
        const search::Options options{"default", request.seed, request.max_rounds, {}, {}, {}};
        lower_peak(compared.searched(), compared.found, options, rule, execute, time);
    }
    choice.smallest = std::min(choice.smallest, compared.found.replay.makespan);  // a lower peak may be shorter, too
    return choice;
}

}  // namespace

PlannedReplica plan_replica(const AllReplicas& all, std::size_t number, const Executor& execute, const Time& time) {
    const Request& request = all.request;
    const Microbatches& microbatches = all.shared.microbatches[number];
    const std::size_t tasks =
        count_tasks(all.partition, partition::units(all.partition, request.setup->model, microbatches));
    const Duration after = static_cast<std::int64_t>(tasks) * all.scope.on_replica_takes;
    const Time whole = time.fraction(1, after);
    const Time search = whole.fraction(fractions.search);
    // Of a large problem full bounds take as long as a dozen schedules: they come last.
    const bool bound_late = !effort_of(tasks, 1).full_bounds_first && all.shared.judges(number);
    const SearchWanted wanted = search_wanted(all, bound_late ? search::BoundEffort::quick : all.shared.bounds(number));
    PlannedReplica one;
    one.searched = compare(request, all.partition, {number, &microbatches}, all.scope.policies, wanted.bounds, execute,
                           whole.fraction(fractions.policies));
    search_or_take(one.searched, request, wanted, execute, search);
    require_schedule(one.searched);
    one.choice = choose_one(all, one.searched, wanted.rule, execute, whole);
    if (bound_late && !whole.is_over()) {
        one.searched.known.bound = bound_of(one.searched.known.cut.step, request.split != Split::never);
        set_bound(one.searched.found, one.searched.known.bound);
    }
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
