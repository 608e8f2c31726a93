#include "planner/targets/target_plan.hpp"

#include "planner/choose/lower_peak.hpp"
#include "planner/choose/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;
using partition::Partition;

namespace {

constexpr std::array settings{Recompute::none, Recompute::half, Recompute::full};

// A chain with a recompute setting; policies that break the target's rules are left out.
struct Setting {
    Evaluation known;
    Recompute recompute = Recompute::none;

    Duration best() const { return known.fastest() == nullptr ? Duration::max() : known.fastest()->makespan(); }
};

// Keeps the fastest recomputation of a (partition, policy); ties go to the earlier.
void keep(std::vector<TargetBaseline>& baselines, const TargetBaseline& found) {
    const auto same = std::find_if(baselines.begin(), baselines.end(), [&](const TargetBaseline& one) {
        return one.partition == found.partition && one.chunks_per_rank == found.chunks_per_rank &&
               one.policy == found.policy;
    });
    if (same == baselines.end())
        baselines.push_back(found);
    else if (found.makespan < same->makespan)
        *same = found;
}

Evaluation evaluate_setting(const Request& request, const Target& target, const Partition& chain,
                            const Microbatches& padded, Recompute recompute, const Executor& execute) {
    const Setup& setup = *request.setup;
    const StepWanted step{
        .name = fmt::format("{}-{}", setup.model.name, target.folder), .target = &target, .menu = {recompute}};
    const EvaluationWanted wanted{.split = request.split != Split::never && recompute == Recompute::none,
                                  .keep_split = true,
                                  .bound = std::nullopt};
    return evaluate(setup, chain, partition::units(chain, setup.model, padded), step, wanted, execute);
}

// Adds the setting's baselines; says why in `why_not` where the target cannot run it, or a policy does not apply.
void judge_setting(const Target& target, Setting& setting, std::vector<TargetBaseline>& baselines,
                   std::string& why_not) {
    Evaluation& known = setting.known;
    const Problem& whole = known.cut.step.problem;
    for (PolicyRun& run : known.policies) {
        if (!run.result.schedule) {
            why_not = run.result.why_not;
        } else if (target.breaks != nullptr &&
                   target.breaks(run.on_split ? known.split->problem : whole, *run.result.schedule)) {
            run.result.schedule.reset();
        } else {
            const Partition& chain = known.cut.partition;
            keep(baselines, {chain.name, chain.chunks_per_rank, run.policy, setting.recompute, run.makespan()});
        }
    }
}

}  // namespace

const TargetBaseline* TargetPlan::best(std::string_view policy) const {
    const TargetBaseline* best = nullptr;
    for (const TargetBaseline& one : baselines)
        if (one.policy == policy && (best == nullptr || one.makespan < best->makespan)) best = &one;
    return best;
}

TargetPlan make_target_plan(const Request& request, const Target& target, const std::vector<Partition>& partitions,
                            const Microbatches& microbatches, const Executor& execute, const Limits& limits) {
    TargetPlan plan;
    plan.target = target.name;
    plan.padding = partition::pad(microbatches);
    std::optional<Setting> best;
    for (const Partition& partition : partitions)
        for (const Recompute recompute : settings) {
            const Partition chain = partition::in_one_chain(partition);
            Setting setting{evaluate_setting(request, target, chain, plan.padding.microbatches, recompute, execute),
                            recompute};
            if (setting.known.shortage) {
                plan.why_not = setting.known.shortage->text();
                continue;
            }
            if (setting.known.inexpressible) {
                plan.why_not = *setting.known.inexpressible;
                continue;
            }
            judge_setting(target, setting, plan.baselines, plan.why_not);
            if (setting.best() == Duration::max() || (best && setting.best() >= best->best())) continue;
            best = std::move(setting);
        }
    if (!best) return plan;

    plan.recompute = best->recompute;
    const Duration fastest = best->best();
    Searchable known = searchable(best->known, std::move(best->known.split));
    if (known.split) known.bound = bound_of_every_choice(*known.whole, *known.split);
    const ChoiceRule rule = choice_rule(request.robust);
    const Problem& whole = known.whole->problem;
    const search::Options options{
        "default", request.seed, request.max_rounds, rules_of(target, whole), {}, rule.near(whole.tasks.size(), 1)};
    auto searched = search_split(known, request.split, options, execute, limits);
    plan.found = std::move(searched.found);
    plan.why_not = plan.found.why_not;
    if (plan.found.schedule) {
        const StepProblem& step = searched.split ? *known.split : *known.whole;
        plan.choice = choose(step, plan.found, fastest, rule, request.seed, execute);
        lower_peak(step, plan.found, options, rule, execute, limits.all);
        plan.choice.smallest = std::min(plan.choice.smallest, plan.found.replay.makespan);
        if (searched.split) best->known.cut.step = join_needless(*known.whole, *known.split, plan.found);
        plan.waits = set_lags(best->known.cut.step, *plan.found.schedule);
    }
    plan.cut = std::move(best->known.cut);
    return plan;
}

}  // namespace pipeweaver::planner
