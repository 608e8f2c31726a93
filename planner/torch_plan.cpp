#include "planner/torch_plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/torch_rules.hpp"
#include "pipeweaver/search/policies.hpp"
#include "planner/selection.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

constexpr std::array settings{Recompute::none, Recompute::half, Recompute::full};

// A chain with a recompute setting, and the best that a policy makes of it.
struct Setting {
    Candidate candidate;
    Recompute recompute = Recompute::none;
    Known known;
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
    const auto& split = setting.known.split;
    const Replayer whole(problem), parts(split ? split->problem : problem);
    for (const auto& policy : search::policies()) {
        const bool on_split = policy.needs_split && split;
        auto applied = search::apply_policy(policy.name, on_split ? parts : whole);
        if (!applied.schedule) {
            why_not = applied.why_not;
            continue;
        }
        if (breaks_torch_rules(on_split ? split->problem : problem, *applied.schedule)) continue;
        setting.best = std::min(setting.best, applied.replay.makespan);
        keep(baselines,
             {partition.name, partition.chunks_per_rank, policy.name, setting.recompute, applied.replay.makespan});
        (on_split ? setting.known.split_starts : setting.known.starts).push_back(std::move(*applied.schedule));
    }
}

StepInput step_input(const Request& request, const costdb::CostDatabase& costs, const Setting& setting) {
    auto input = step_input(request, costs, setting.candidate, fmt::format("{}-torch", request.model.name));
    input.modes = {setting.recompute};
    input.input_gradient_frees = false;
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
                          const Limits& limits) {
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
            if (request.split != Split::never && recompute == Recompute::none)
                setting.known.split = split_step(setting.candidate.step);
            apply_policies(setting, plan.baselines, plan.why_not);
            if (setting.best == Duration::max() || (best && setting.best >= best->best)) continue;
            best = std::move(setting);
        }
    if (!best) return plan;

    search::Options options;
    options.seed = request.seed;
    options.max_rounds = request.max_rounds;
    options.rules = torch_rules(best->candidate.step.problem);
    const ChoiceRule rule = choice_rule(request.robust);
    options.near = rule.near(best->candidate.step.problem.tasks.size(), 1);
    plan.candidate = std::move(best->candidate);
    plan.recompute = best->recompute;
    Known& known = best->known;
    known.whole = &plan.candidate.step;
    if (known.split) known.bound = bound_of_every_choice(plan.candidate.step);
    auto searched = search_split(known, request.split, options, execute, limits);
    plan.found = std::move(searched.found);
    plan.why_not = plan.found.why_not;
    if (!plan.found.schedule) return plan;
    const StepProblem& step = searched.split ? *known.split : plan.candidate.step;
    plan.choice = choose(step, plan.found, best->best, rule, request.seed, execute);
    if (searched.split) plan.candidate.step = join_needless(plan.candidate.step, *known.split, plan.found);
    return plan;
}

}  // namespace pipeweaver::planner
