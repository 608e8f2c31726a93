#include "planner/way/run.hpp"

#include "pipeweaver/search/standing.hpp"
#include "planner/replicas/assignment.hpp"
#include "planner/way/policy_run.hpp"
#include "planner/way/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

// A replica's step as it is run.
struct Lent {
    const Step& step;
    StepUnderPolicy& runs;
};

// Calls with the step of a replica that fits; for another it returns why it does not.
using Lend = std::function<std::string(std::size_t replica, const std::function<void(Lent)>& use)>;

// What a setting comes to on one replica; none: it does not fit.
using Fitted = std::optional<search::Standing>;

// On the slower and the fuller of two.
Fitted of_both(const Fitted& a, const Fitted& b) {
    if (!a || !b) return std::nullopt;
    return search::Standing{std::max(a->time, b->time), std::max(a->peak, b->peak)};
}

// A way's replicas, run with one recomputation for all of them.
class Running {
public:
    Running(std::size_t replicas, const std::vector<Recompute>& settings, bool may_be_by_rank, Lend lend,
            const Executor& execute, bool keeps_schedules)
        : replicas_(replicas),
          settings_(settings),
          may_be_by_rank_(may_be_by_rank),
          lend_(std::move(lend)),
          execute_(execute),
          keeps_schedules_(keeps_schedules) {}

    WayResult run(const std::optional<StepRecompute>& said) const {
        if (said)
            if (WayResult result = under(*said); result.runs()) return result;
        std::string why_not;
        const auto best = fastest(why_not);
        return best ? under(*best) : WayResult{.why_not = std::move(why_not)};
    }

private:
    // f(replica, step) for each; why the first that does not fit does not.
    template <class F>
    std::string for_each(const F& f) const {
        std::vector<std::string> refused(replicas_);
        run_jobs(execute_, replicas_,
                 [&](std::size_t r) { refused[r] = lend_(r, [&](const Lent& lent) { f(r, lent); }); });
        return first_of(refused);
    }

    static std::string first_of(const std::vector<std::string>& refused) {
        const auto first = std::find_if(refused.begin(), refused.end(), [](const auto& why) { return !why.empty(); });
        return first == refused.end() ? std::string() : *first;
    }

    WayResult under(const StepRecompute& setting) const {
        WayResult result{.recompute = setting, .replicas = std::vector<ReplicaRun>(replicas_)};
        std::vector<std::string> refused(replicas_);
        result.why_not = for_each([&](std::size_t r, const Lent& lent) {
            auto run = lent.runs.run(setting);
            if (!run) {
                refused[r] = fmt::format("recompute {}: {}", name_of(setting), lent.runs.why_not());
                return;
            }
            if (lent.step.input.setup->recipe.bucket > Bytes{})
                run->makespan = replay_in_full(lent.step, false, run->schedule).replay.makespan;
            if (!keeps_schedules_) run->schedule = {};
            result.replicas[r] = std::move(*run);
        });
        if (result.runs()) result.why_not = first_of(refused);
        for (const ReplicaRun& one : result.replicas) {
            if (one.step() <= result.step) continue;
            result.makespan = one.makespan;
            result.step = one.step();
        }
        return result;
    }

    // Those that are worth running on all replicas.
    std::vector<StepRecompute> worth_running(std::string& why_not) const {
        std::vector<std::optional<std::size_t>> fewest(replicas_);
        std::vector<char> has_order(replicas_);
        why_not = for_each([&](std::size_t r, const Lent& lent) {
            has_order[r] = lent.runs.has_order() ? 1 : 0;
            if (lent.runs.has_order()) fewest[r] = lent.runs.fewest_blocks();
        });
        std::vector<StepRecompute> worth;
        if (!why_not.empty()) return worth;
        const auto most = std::max_element(fewest.begin(), fewest.end(), [&](const auto& a, const auto& b) {
            return a && b && settings_[*a].layers < settings_[*b].layers;
        });
        const bool all_have =
            std::all_of(fewest.begin(), fewest.end(), [](const auto& one) { return one.has_value(); });
        for (std::size_t s = 0; s < settings_.size(); ++s) {
            const bool is_blocks = settings_[s].kind == Recompute::Kind::blocks;
            if (!is_blocks || !has_order.front() || (all_have && s == **most))
                worth.push_back({.everywhere = settings_[s]});
        }
        if (may_be_by_rank_ && has_order.front()) worth.push_back(recompute_by_rank);
        return worth;
    }

    std::optional<StepRecompute> fastest(std::string& why_not) const {
        const auto settings = worth_running(why_not);
        if (!why_not.empty()) return std::nullopt;
        std::vector<std::vector<Fitted>> fitted(replicas_, std::vector<Fitted>(settings.size()));
        std::vector<std::string> refused(replicas_);
        why_not = for_each([&](std::size_t r, const Lent& lent) {
            bool fits = false;
            for (std::size_t s = 0; s < settings.size(); ++s) {
                const auto run = lent.runs.run(settings[s]);
                if (run) fitted[r][s] = {run->step(), lent.runs.fullness(*run)};
                fits = fits || run;
            }
            if (!fits) refused[r] = lent.runs.why_not();
        });
        why_not = first_of(refused);
        if (!why_not.empty()) return std::nullopt;
        std::vector<Fitted>& all = fitted.front();
        for (std::size_t r = 1; r < replicas_; ++r)
            for (std::size_t s = 0; s < settings.size(); ++s) all[s] = of_both(all[s], fitted[r][s]);
        std::optional<std::size_t> best;
        for (std::size_t s = 0; s < settings.size(); ++s)
            if (all[s] && (!best || *all[s] < *all[*best])) best = s;
        if (!best) why_not = "no recomputation fits all replicas";
        return best ? std::optional(settings[*best]) : std::nullopt;
    }

    std::size_t replicas_;
    const std::vector<Recompute>& settings_;
    bool may_be_by_rank_;
    Lend lend_;
    const Executor& execute_;
    bool keeps_schedules_;
};

// Why microbatches are no whole groups where the target interleaves those alone; empty if they are.
std::string why_no_groups(const Target& target, const Step& step, std::string_view policy) {
    const auto ranks = step.cut.step.problem.ranks.size(), microbatches = step.input.units.size();
    if (target.launch.splits_groups || policy != "interleaved" || microbatches % ranks == 0) return {};
    return fmt::format("{} interleaves microbatches in groups of {}, and {} leave a group of {}", target.option, ranks,
                       microbatches, microbatches % ranks);
}

std::string why_not_run(const Target& target, const Step& step, std::string_view policy) {
    return step.shortage ? step.shortage->text() : why_no_groups(target, step, policy);
}

// Steps at hand, each with what has been worked out of it.
Lend lend_known(const std::vector<const Step*>& steps, std::string_view policy, const std::vector<Recompute>& settings,
                const Target& target, std::vector<std::optional<StepUnderPolicy>>& runs) {
    runs.resize(steps.size());
    return [&steps, policy, &settings, &target, &runs](std::size_t r, const std::function<void(Lent)>& use) {
        std::string why_not = why_not_run(target, *steps[r], policy);
        if (!why_not.empty()) return why_not;
        if (!runs[r]) runs[r].emplace(steps[r]->cut.step, policy, settings);
        use({*steps[r], *runs[r]});
        return why_not;
    };
}

WayResult run_known(const std::vector<const Step*>& steps, std::string_view policy,
                    const std::vector<Recompute>& settings, const Target& target,
                    const std::optional<StepRecompute>& recompute) {
    std::vector<std::optional<StepUnderPolicy>> runs;
    return Running(steps.size(), settings, target.launch.by_rank, lend_known(steps, policy, settings, target, runs),
                   in_order, true)
        .run(recompute);
}

}  // namespace

WayOfTarget::WayOfTarget(const Way& way, const Target& one)
    : target(launches(one, way) ? &one : &targets().front()), settings(settings_of(way, *target)) {}

Step WayOfTarget::build(const Way& way, const Microbatches& microbatches) const {
    return planner::build(
        *way.setup, way.partition, as_run_by(*target, microbatches),
        {.name = "opponent", .target = target, .menu = settings, .priced_split = false, .most_tasks = sizes.tasks});
}

BuiltWay::BuiltWay(const Way& way, const std::vector<Microbatches>& replicas, const Target& target)
    : runs_(way, target) {
    for (const Microbatches& microbatches : replicas) {
        known_.push_back(runs_.build(way, microbatches));
        if (known_.back().shortage) break;
    }
}

WayResult BuiltWay::run(std::string_view policy, const std::optional<StepRecompute>& recompute) const {
    std::vector<const Step*> steps;
    for (const Step& one : known_) steps.push_back(&one);
    return run_known(steps, policy, runs_.settings, *runs_.target, recompute);
}

WayResult run_way(const Way& way, const std::vector<Microbatches>& replicas, const Target& target,
                  const Executor& execute) {
    const WayOfTarget runs(way, target);
    const auto like = first_alike(replicas);
    std::vector<std::size_t> different;
    for (std::size_t r = 0; r < like.size(); ++r)
        if (like[r] == r) different.push_back(r);
    const Lend lend = [&](std::size_t k, const std::function<void(Lent)>& use) {
        const Step step = runs.build(way, replicas[different[k]]);
        std::string why_not = why_not_run(*runs.target, step, way.policy);
        if (!why_not.empty()) return why_not;
        StepUnderPolicy one(step.cut.step, way.policy, runs.settings);
        use({step, one});
        return why_not;
    };
    WayResult result =
        Running(different.size(), runs.settings, runs.target->launch.by_rank, lend, execute, false).run(way.recompute);
    if (!result.runs()) return result;
    std::vector<ReplicaRun> all;
    for (const std::size_t first : like) {
        const auto place = std::lower_bound(different.begin(), different.end(), first) - different.begin();
        all.push_back(result.replicas[static_cast<std::size_t>(place)]);
    }
    result.replicas = std::move(all);
    return result;
}

WayResult run_steps(const std::vector<const Step*>& steps, std::string_view policy,
                    const std::vector<Recompute>& settings, const std::optional<StepRecompute>& recompute) {
    return run_known(steps, policy, settings, targets().front(), recompute);
}

}  // namespace pipeweaver::planner
