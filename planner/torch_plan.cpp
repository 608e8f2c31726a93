#include "planner/torch_plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/torch_rules.hpp"
#include "pipeweaver/search/policies.hpp"
#include "planner/selection.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

constexpr std::array settings{Recompute::none, Recompute::half, Recompute::full};

// A chain with a recompute setting, and the best that a policy makes of it.
struct Setting {
    Candidate candidate;
    Recompute recompute = Recompute::none;
    std::vector<Schedule> starts;
    Duration best = Duration::max();
};

// Keeps the fastest recomputation of a (partition, policy); ties go to the earlier.
void keep(std::vector<TorchBaseline>& baselines, const TorchBaseline& found) {
    const auto same = std::find_if(baselines.begin(), baselines.end(), [&](const TorchBaseline& one) {
        return one.partition == found.partition && one.chunks_per_rank == found.chunks_per_rank &&
               one.policy == found.policy;
    });
    if (same == baselines.end())
        baselines.push_back(found);
    else if (found.makespan < same->makespan)
        *same = found;
}

void apply_policies(Setting& setting, std::vector<TorchBaseline>& baselines, std::string& why_not) {
    const partition::Partition& partition = setting.candidate.partition;
    const Problem& problem = setting.candidate.step.problem;
    const Replayer replayer(problem);
    for (const auto& policy : search::policies()) {
        auto applied = search::apply_policy(policy.name, replayer);
        if (!applied.schedule) {
            why_not = applied.why_not;
            continue;
        }
        if (breaks_torch_rules(problem, *applied.schedule)) continue;
        setting.best = std::min(setting.best, applied.replay.makespan);
        keep(baselines,
             {partition.name, partition.chunks_per_rank, policy.name, setting.recompute, applied.replay.makespan});
        setting.starts.push_back(std::move(*applied.schedule));
    }
}

StepInput step_input(const Request& request, const costdb::CostDatabase& costs, const Setting& setting) {
    StepInput input;
    input.name = fmt::format("{}-torch", request.model.name);
    input.model = &request.model;
    input.cluster = &request.cluster;
    input.costs = &costs;
    input.layout = request.layout;
    input.chains = setting.candidate.partition.chains;
    input.units = setting.candidate.units;
    input.modes = {setting.recompute};
    // PyTorch allocates receive buffers for all microbatches at once.
    input.receive_buffers = static_cast<std::int64_t>(setting.candidate.units.size());
    return input;
}

}  // namespace

const TorchBaseline* TorchPlan::best(std::string_view policy) const {
    const TorchBaseline* best = nullptr;
    for (const TorchBaseline& one : baselines)
        if (one.policy == policy && (best == nullptr || one.makespan < best->makespan)) best = &one;
    return best;
}

TorchPlan make_torch_plan(const Request& request, const costdb::CostDatabase& costs,
                          const std::vector<partition::Partition>& partitions,
                          const std::vector<workloads::Microbatch>& microbatches, const Executor& execute,
                          const search::KeepGoing& keep_going) {
    TorchPlan plan;
    plan.padding = partition::pad(microbatches);
    std::optional<Setting> best;
    for (const auto& partition : partitions)
        for (const Recompute recompute : settings) {
            Setting setting;
            setting.recompute = recompute;
            setting.candidate.partition = partition::in_one_chain(partition);
            setting.candidate.units =
                partition::units(setting.candidate.partition, request.model, plan.padding.microbatches);
            try {
                setting.candidate.step = build_step(step_input(request, costs, setting));
            } catch (const Error& error) {
                if (error.kind() != ErrorKind::limit) throw;
                plan.why_not = error.what();
                continue;
            }
            if (const auto why = not_expressible_in_torch(setting.candidate.step.problem)) {
                plan.why_not = *why;
                continue;
            }
            apply_policies(setting, plan.baselines, plan.why_not);
            if (setting.starts.empty() || (best && setting.best >= best->best)) continue;
            best = std::move(setting);
        }
    if (!best) return plan;

    search::Options options;
    options.seed = request.seed;
    options.max_rounds = request.max_rounds;
    options.starts = std::move(best->starts);
    options.rules = torch_rules(best->candidate.step.problem);
    const ChoiceRule rule = choice_rule(request.robust);
    options.near = rule.near(best->candidate.step.problem.tasks.size(), 1);
    plan.candidate = std::move(best->candidate);
    plan.recompute = best->recompute;
    plan.found = search::solve(Replayer(plan.candidate.step.problem), options, execute, keep_going);
    plan.why_not = plan.found.why_not;
    if (plan.found.schedule)
        plan.choice = choose(plan.candidate.step, plan.found, best->best, rule, request.seed, execute);
    return plan;
}

}  // namespace pipeweaver::planner
