#include "pipeweaver/planner/plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "planner/assemble.hpp"
#include "planner/opponents.hpp"
#include "planner/selection.hpp"
#include "planner/torch_plan.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;
using partition::Workload;

namespace {

// Shares of the budget. The modality-aware partition has most to gain from a search.
constexpr double torch_share = 0.3;
constexpr double torch_share_if_wanted = 0.5;
constexpr double main_part = 0.7;  // of what is left

std::optional<Duration> fastest(const std::vector<Baseline>& baselines) {
    std::optional<Duration> time;
    for (const Baseline& one : baselines) time = std::min(time.value_or(one.makespan), one.makespan);
    return time;
}

}  // namespace

Plan make_plan(const Request& request, const costdb::CostDatabase& costs, const Executor& execute,
               const Allowance& allowance) {
    const Workload workload{&request.model, &request.cluster, &costs, request.layout, &request.microbatches};
    const Shared shared = share(request, workload, execute);
    const auto replicas = shared.shares.size();
    const Parts parts = parts_of(request, shared.shares);
    const auto all = partitions(request, workload);
    auto compared = compare_all(request, costs, all, parts, execute);

    const auto searched = worth_searching(compared);
    const ChoiceRule rule = choice_rule(request.robust);
    const double for_torch = request.for_torch ? torch_share_if_wanted : torch_share;
    for (const std::size_t p : searched) {
        const double part = searched.size() == 1 ? 1 : p == searched.front() ? main_part : 1 - main_part;
        const double share = (1 - for_torch) * part / static_cast<double>(replicas);
        for (auto& replica : compared) search_in(replica[p], request, rule, execute, limits(allowance, share));
    }

    Plan compare;
    merge_baselines(compared, compare);
    const auto selected = select(compared, searched, fastest(compare.baselines), rule, request.seed, execute);
    const std::size_t best = selected.partition;
    compare.choice = selected.choice;
    compare.best_chain = best_chain(compared[slowest_replica(compared, best)], compare.baselines);
    compare.robustness = robustness_of(compared, best, opponents(compare), request.seed, execute);
    std::vector<Compared> chosen;
    for (auto& replica : compared) chosen.push_back(std::move(replica[best]));
    Plan plan = assemble(request, shared, std::move(chosen), std::move(compare));
    plan.in_situ = emulator::in_situ_factors(costs, request.cluster.device);
    plan.torch = make_torch_plan(request, costs, all, parts.front(), execute, limits(allowance, for_torch));
    if (request.for_torch && !plan.torch.found.schedule) fail(ErrorKind::limit, "torch-csv: {}", plan.torch.why_not);
    return plan;
}

}  // namespace pipeweaver::planner
