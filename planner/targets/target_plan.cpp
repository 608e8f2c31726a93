#include "planner/targets/target_plan.hpp"

#include "pipeweaver/search/policy_names.hpp"
#include "planner/replicas/plan_replica.hpp"
#include "planner/way/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;
using partition::Partition;

namespace {

// What the stages recompute, with that of each rank where it is by rank.
struct Setting {
    StepRecompute of_step{};
    std::vector<Recompute> by_rank{};
};

// A chain with a setting; policies that break the target's rules are left out.
struct Tried {
    Setting setting;
    Step known;

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

// A request's partitions for a target, with the microbatches as it runs them.
struct ForTarget {
    const Job& job;
    const Target& target;
    const Microbatches& microbatches;
    const Microbatches* fullest = nullptr;  // of replicas that keep their shapes the one that holds most

    StepWanted step() const {
        return {.name = fmt::format("{}-{}", job.setup->model.name, target.folder), .target = &target};
    }

    ForTarget on_fullest() const { return {job, target, *fullest}; }

    // Those of its policies that `which` holds of.
    template <class Which>
    std::vector<std::string> policies(const Which& which) const {
        std::vector<std::string> names;
        for (const search::Policy& policy : search::policies())
            if (runs_policy(target, policy.name) && which(policy)) names.push_back(policy.name);
        return names;
    }

    // Of an order of its own, only where a policy needs it.
    bool may_split() const {
        const auto needs_split = [](const search::Policy& policy) { return policy.needs_split; };
        return job.split != Split::never && (target.searches || !policies(needs_split).empty());
    }
};

Tried try_setting(const ForTarget& to, const Partition& chain, const Setting& setting, const Executor& execute) {
    StepWanted step = to.step();
    step.menu = {setting.of_step.everywhere};
    step.mode_of_rank = setting.by_rank;
    // A stage that recomputes would do so again for the weight gradient.
    const PoliciesWanted wanted{.split = to.may_split() && setting.of_step == no_recompute,
                                .bound = std::nullopt,
                                .policies = to.policies([](const search::Policy&) { return true; })};
    return {setting, evaluate(*to.job.setup, chain, to.microbatches, step, wanted, execute)};
}

// Adds the setting's baselines; says why in `why_not` where the target cannot run it, or a policy does not apply.
void keep_policies(const Target& target, Tried& tried, std::vector<TargetBaseline>& baselines, std::string& why_not) {
    Step& known = tried.known;
    const Problem& whole = known.cut.step.problem;
    for (PolicyRun& run : known.policies) {
        if (!run.result.schedule) {
            why_not = run.result.why_not;
        } else if (target.breaks != nullptr &&
                   target.breaks(run.on_split ? known.split->problem : whole, *run.result.schedule)) {
            run.result.schedule.reset();
        } else {
            const Partition& chain = known.cut.partition;
            keep(baselines, {chain.name, chain.chunks_per_rank, run.policy, tried.setting.of_step, run.makespan()});
        }
    }
}

// Where what each rank needs under a policy of a fixed order is neither nothing nor everything everywhere: what it
// needs under the fastest of them that keeps the target's rules.
std::optional<Setting> by_rank(const ForTarget& to, const Partition& chain, const Executor& execute) {
    Target open = to.target;  // of several modes one is taken, which the target need not carry
    open.inexpressible = nullptr;
    const std::vector<Recompute> menu = usual_settings(*to.job.setup, chain);
    StepWanted step = to.step();
    step.target = &open;
    step.menu = menu;
    step.priced_split = false;
    auto policies = to.policies([](const search::Policy& one) { return one.fixed_order && !one.needs_split; });
    if (policies.empty()) return std::nullopt;
    Step known = evaluate(
        *to.job.setup, chain, to.microbatches, step,
        {.split = false, .bound = std::nullopt, .policies = std::move(policies), .mode_by_rank = true}, execute);
    if (known.shortage) return std::nullopt;
    const Problem& problem = known.cut.step.problem;
    for (PolicyRun& run : known.policies)
        if (run.applies() && open.breaks != nullptr && open.breaks(problem, *run.result.schedule))
            run.result.schedule.reset();
    const PolicyRun* fastest = known.fastest();
    if (fastest == nullptr) return std::nullopt;
    Setting setting{recompute_by_rank, recompute_of_ranks(problem, *fastest->result.schedule, menu)};
    const auto all = [&](Recompute one) {
        return std::all_of(setting.by_rank.begin(), setting.by_rank.end(), [&](Recompute rank) { return rank == one; });
    };
    if (all(Recompute::none) || all(Recompute::full)) return std::nullopt;
    return setting;
}

std::vector<Setting> settings_of(const ForTarget& to, const Partition& chain, const Executor& execute) {
    std::vector<Setting> settings{{no_recompute}, {{.everywhere = Recompute::full}}};
    if (to.target.recompute == RecomputeBy::step) return settings;
    if (auto setting = by_rank(to, chain, execute)) settings.push_back(std::move(*setting));
    return settings;
}

// All replicas' to one number and, in a pipeline, to one shape. Their times differ a little even so: samples attend to
// themselves alone.
std::vector<Microbatches> pad_all(const std::vector<Microbatches>& replicas, bool to_one_shape, TargetPlan& plan) {
    std::size_t most = 0;
    for (const Microbatches& one : replicas) most = std::max(most, one.size());
    Microbatches all, repeated;
    all.reserve(replicas.size() * most);
    for (const Microbatches& one : replicas) {
        all.insert(all.end(), one.begin(), one.end());
        repeated.insert(repeated.end(), most - one.size(), one.back());
        all.insert(all.end(), most - one.size(), one.back());
    }
    plan.repeated = repeated.size();
    partition::Padded& padding = plan.padding;
    padding = partition::pad(all);
    const auto not_real = partition::pad(repeated);
    padding.real_tokens -= not_real.real_tokens;
    padding.real_patches -= not_real.real_patches;
    if (!to_one_shape) {
        padding.microbatches = std::move(all);
        padding.padded_tokens = padding.real_tokens;
        padding.padded_patches = padding.real_patches;
    }
    std::vector<Microbatches> padded;
    padded.reserve(replicas.size());
    for (auto at = padding.microbatches.begin(); at != padding.microbatches.end();
         at += static_cast<std::ptrdiff_t>(most))
        padded.emplace_back(at, at + static_cast<std::ptrdiff_t>(most));
    return padded;
}

// The replica with the most to do; ties go to the earlier.
std::size_t most_loaded(const Job& job, const std::vector<Microbatches>& replicas, const Executor& execute) {
    std::size_t most = 0;
    Duration largest{};
    for (std::size_t r = 0; r < replicas.size() && replicas.size() > 1; ++r) {
        const auto costs = partition::microbatch_costs(*job.setup, replicas[r], execute);
        const Duration load = std::accumulate(costs.begin(), costs.end(), Duration{});
        if (load > largest) most = r;
        largest = std::max(largest, load);
    }
    return most;
}

// Takes the microbatches that the plan is made on. Returns those of the fullest replica where each has its own shapes:
// it must fit these, too.
Microbatches take_replica(const Job& job, const Target& target, const std::vector<Microbatches>& replicas,
                          const Executor& execute, TargetPlan& plan) {
    Microbatches full;
    if (!target.fixed_shapes) {
        plan.padding.microbatches = replicas.front();
        return full;
    }
    const bool to_one_shape = pads(target, job.setup->layout);
    auto all = pad_all(replicas, to_one_shape, plan);
    plan.replica = most_loaded(job, all, execute);
    if (!to_one_shape) full = all[fullest(all)];
    plan.padding.microbatches = std::move(all[plan.replica]);
    return full;
}

// Of a step that fits under one of the policies, whose backwards are not split.
Bytes peak_of(const Tried& tried) {
    const auto peaks = peaks_of(tried.known.cut.step, tried.known.fastest()->result.replay.peak);
    return *std::max_element(peaks.begin(), peaks.end());
}

// On one rank all orders take as long; this one holds least, whatever the shapes.
Target on_one_rank(Target target) {
    target.searches = false;
    target.policies = {search::one_f_one_b_policy};
    return target;
}

// The partition and setting under which a known policy is fastest; the plan hears of all that were tried.
std::optional<Tried> fastest_of(const ForTarget& to, const std::vector<Partition>& partitions, TargetPlan& plan,
                                const Executor& execute, const Time& time) {
    std::optional<Tried> best;
    for (const Partition& partition : partitions) {
        const Partition chain =
            to.target.one_chain ? partition::in_one_chain(partition, to.job.setup->model) : partition;
        plan.cut_short = plan.cut_short || (best && time.is_over());
        if (plan.cut_short) break;
        for (const Setting& setting : settings_of(to, chain, execute)) {
            Tried tried = try_setting(to, chain, setting, execute);
            if (tried.known.shortage) {
                plan.why_not = tried.known.shortage->text();
                continue;
            }
            if (tried.known.inexpressible) {
                plan.why_not = *tried.known.inexpressible;
                continue;
            }
            std::optional<Tried> on_fullest;
            if (to.fullest != nullptr) on_fullest = try_setting(to.on_fullest(), chain, setting, execute);
            if (on_fullest && on_fullest->best() == Duration::max()) {
                plan.why_not = "not all replicas fit";
                continue;
            }
            keep_policies(to.target, tried, plan.baselines, plan.why_not);
            if (tried.best() == Duration::max() || (best && tried.best() >= best->best())) continue;
            best = std::move(tried);
            if (on_fullest) plan.peak_of_fullest = peak_of(*on_fullest);
        }
    }
    return best;
}

}  // namespace

const TargetBaseline* TargetPlan::best(std::string_view policy) const {
    const TargetBaseline* best = nullptr;
    for (const TargetBaseline& one : baselines)
        if (one.policy == policy && (best == nullptr || one.makespan < best->makespan)) best = &one;
    return best;
}

TargetPlan make_target_plan(const Job& job, const Target& target, const std::vector<Partition>& partitions,
                            const std::vector<Microbatches>& replicas, const Executor& execute, const Time& time) {
    TargetPlan plan;
    plan.target = target.name;
    const Microbatches full = take_replica(job, target, replicas, execute, plan);
    const Target runs = full.empty() ? target : on_one_rank(target);
    const ForTarget to{job, runs, plan.padding.microbatches, full.empty() ? nullptr : &full};
    std::optional<Tried> best = fastest_of(to, partitions, plan, execute, time);
    if (!best) return plan;

    plan.recompute = best->setting.of_step;
    plan.by_rank = best->setting.by_rank;
    ScheduleWanted wanted = schedule_wanted(job);
    if (!best->known.split) wanted.split = Split::never;
    wanted.policy_bounds.reset();
    if (best->known.split) wanted.policy_bounds = search::BoundEffort::full;
    wanted.rules = rules_of(target, best->known.cut.step.problem);
    wanted.rule = job.robust ? robust_rule : usual_rule;
    wanted.search = wanted.choose = runs.searches;
    if (!runs.policies.empty()) wanted.policies = runs.policies;
    ScheduledStep scheduled = schedule_step(std::move(best->known), wanted, execute, time);
    plan.why_not = scheduled.found.why_not;
    plan.choice = std::move(scheduled.choice);
    if (!scheduled.found.schedule) {
        plan.cut = take_cut(std::move(scheduled.step));
        plan.found = std::move(scheduled.found);
        return plan;
    }
    FinishedStep finished = finish(std::move(scheduled));
    plan.cut = std::move(finished.cut);
    plan.found = std::move(finished.found);
    plan.waits = finished.waits;
    return plan;
}

}  // namespace pipeweaver::planner
