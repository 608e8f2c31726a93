#include "pipeweaver/planner/plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/partition_choice.hpp"
#include "pipeweaver/planner/static_order.hpp"
#include "pipeweaver/search/policies.hpp"
#include "planner/assemble.hpp"
#include "planner/choose/lower_peak.hpp"
#include "planner/choose/replica_search.hpp"
#include "planner/choose/selection.hpp"
#include "planner/job/sample.hpp"
#include "planner/targets/target_plan.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Partition;

namespace {

// Shares of the budget. The modality-aware partition has most to gain from a search.
constexpr double targets_share = 0.3;            // of the other targets together
constexpr double targets_share_if_wanted = 0.5;  // where one of them is what is wanted
constexpr double peaks_share = 0.02;             // of lower peaks; far more than they take unless replicas are many
constexpr double main_part = 0.7;                // of what is left

std::optional<Duration> fastest(const std::vector<Baseline>& baselines) {
    std::optional<Duration> time;
    for (const Baseline& one : baselines) time = std::min(time.value_or(one.makespan), one.makespan);
    return time;
}

std::vector<schedule::Schedule> carried_orders(const std::vector<const StaticOrder*>& orders, const StepProblem& step) {
    std::vector<schedule::Schedule> all;
    for (const StaticOrder* order : orders)
        for (schedule::Schedule& one : order->carried(step)) all.push_back(std::move(one));
    return all;
}

// What a target with a fixed chain may run: the plan's own partition where that is one chain or was asked for by name,
// else what its users would cut. A chain of many small stages is seldom what such a target is fastest with.
std::vector<Partition> target_chains(const Request& request, std::vector<Partition> partitions) {
    const Partition& first = partitions.front();
    const bool one_chain = partitions.size() == 1 && first.chains.size() == 1 && first.dealt.empty();
    if (one_chain || !request.partition.empty()) return partitions;
    return partition::partitions(*request.setup, cut_on(request));
}

std::vector<TargetPlan> target_plans(const Request& request, const std::vector<Partition>& partitions,
                                     const Microbatches& microbatches, const Executor& execute, const Limits& limits) {
    std::vector<TargetPlan> plans;
    for (const Target& one : targets()) {
        if (!one.fixed_chain) continue;
        plans.push_back(make_target_plan(request, one, partitions, microbatches, execute, limits));
        if (request.target == one.name && !plans.back().found.schedule)
            fail(ErrorKind::limit, "{}: {}", one.name, plans.back().why_not);
    }
    return plans;
}

// The opponents' rows go first. Returns the one to picture and to stand up to, on the replicas that are judged, the
// slowest of them first.
std::optional<OpponentRun> add_opponents(const Opponents& opponents, const Request& request, const Shared& shared,
                                         std::size_t slowest, const std::vector<std::size_t>& judged,
                                         Baselines& baselines, const Executor& execute) {
    if (opponents.ways.empty()) return std::nullopt;
    Baselines theirs = run_opponents(opponents, request, execute);
    std::vector<Microbatches> replicas{shared.microbatches[slowest]};
    for (const std::size_t r : judged)
        if (r != slowest) replicas.push_back(shared.microbatches[r]);
    auto run = pipelined_opponent(opponents, theirs, replicas);
    if (run) baselines.pictured = pictured(*run, 0);
    baselines.chosen_on = request.sample.name;
    baselines.all.insert(baselines.all.begin(), theirs.all.begin(), theirs.all.end());
    baselines.not_applicable.insert(baselines.not_applicable.begin(), theirs.not_applicable.begin(),
                                    theirs.not_applicable.end());
    return run;
}

}  // namespace

const TargetPlan& Plan::target(std::string_view name) const {
    return *std::find_if(targets.begin(), targets.end(), [&](const TargetPlan& one) { return one.target == name; });
}

Plan make_plan(const Request& request, const Executor& execute, const Allowance& allowance, const Scope& scope) {
    const Shared shared = share(request, execute);
    const auto choice = scope.partitions.empty() ? choose_partition(request, quick_choice, execute) : PartitionChoice{};
    const auto partitions = scope.partitions.empty() ? std::vector{choice.partition} : scope.partitions;
    auto compared = compare(request, partitions, shared.microbatches, scope.policies, execute);

    const auto searched = worth_searching(compared);
    MoreStarts more;
    if (!scope.orders.empty()) more = [&scope](const StepProblem& step) { return carried_orders(scope.orders, step); };
    const ChoiceRule rule = choice_rule(request.robust);
    const SearchWanted wanted{rule, more, bounds_of(compared.size())};
    const bool wants_target = request.target != targets().front().name;
    std::vector<std::size_t> all_replicas(compared.size());
    std::iota(all_replicas.begin(), all_replicas.end(), std::size_t{0});
    const double for_targets = !scope.targets ? 0 : wants_target ? targets_share_if_wanted : targets_share;
    for (const std::size_t p : searched) {
        const double part = searched.size() == 1 ? 1 : p == searched.front() ? main_part : 1 - main_part;
        const double share = (1 - for_targets - peaks_share) * part;
        const auto search = [&](std::size_t r, const Executor& on, const Limits& within) {
            search_in(compared[r][p], request, wanted, on, within);
        };
        search_replicas(all_replicas, search, execute, allowance, share);
    }

    Baselines baselines = baselines_of(compared, scope.policies);
    Opponents opponents;
    if (scope.opponents)
        opponents = scope.known_opponents ? *scope.known_opponents : choose_opponents(request, execute);
    const auto selected = select(compared, searched, fastest(baselines.all), rule, request.seed, execute);
    const std::size_t best = selected.partition;
    const search::Options options{"default", request.seed, request.max_rounds, {}, {}, {}};
    const auto lower = [&](std::size_t r, const Executor& on, const Limits& within) {
        lower_peak(compared[r][best].searched(), compared[r][best].found, options, rule, on, within.all);
    };
    search_replicas(all_replicas, lower, execute, allowance, peaks_share);
    const auto judged = slowest_replicas(compared, best, most_replicas_judged);
    if (wanted.bounds == search::BoundEffort::quick) sharpen(compared, best, judged, request.split, baselines, execute);
    const auto opponent =
        add_opponents(opponents, request, shared, slowest_replica(compared, best), judged, baselines, execute);
    std::optional<Robustness> robustness;
    if (scope.robustness) {
        const Draws draws{.seed = request.seed, .memory = usable_bytes(request.setup->cluster)};
        robustness = robustness_of(compared, best, judged, opponent, fastest_policy(baselines), draws, execute);
    }
    std::vector<Compared> chosen;
    for (auto& replica : compared) chosen.push_back(std::move(replica[best]));

    Plan plan = assemble(request, shared, std::move(chosen));
    plan.partition_choice = choice;
    plan.baselines = std::move(baselines);
    plan.choice = selected.choice;
    plan.choice.smallest = std::min(plan.choice.smallest, plan.makespan);  // lower peaks may be shorter, too
    plan.robustness = std::move(robustness);
    plan.targets = scope.targets ? target_plans(request, target_chains(request, partitions),
                                                shared.microbatches.front(), execute, limits(allowance, for_targets))
                                 : no_target_plans("not asked for");
    return plan;
}

Cut dip_problem(const Request& request) {
    const Setup& setup = *request.setup;
    const Partition dip = partition::partitioner("dip").make(setup, request.microbatches, 0);
    auto units = partition::units(dip, setup.model, request.microbatches);
    require_plannable(request.microbatches.size(), count_tasks(dip, units));
    auto known = build(setup, dip, std::move(units), {.name = problem_name(setup, dip, 0)});
    if (known.shortage) fail(ErrorKind::limit, "{}", known.shortage->text());
    return std::move(known.cut);
}

}  // namespace pipeweaver::planner
