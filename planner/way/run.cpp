#include "planner/way/run.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "pipeweaver/search/standing.hpp"
#include "planner/replicas/assignment.hpp"
#include "planner/way/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <tuple>
#include <utility>

namespace pipeweaver::planner {

using namespace emulator;
using namespace schedule;

namespace {

// A replica's step as it is run.
struct Lent {
    const Step& step;
    StepUnderPolicy& runs;
};

// Why a replica has no step; empty: it has one.
struct Refused {
    std::string why{};
    Bytes short_by{};  // 0: not known
};

// Calls with the step of a replica that fits; for another it returns why it does not.
using Lend = std::function<Refused(std::size_t replica, const std::function<void(Lent)>& use)>;

// What a setting comes to on one replica; none: it does not fit.
using Fitted = std::optional<search::Standing>;

// On the slower and the fuller of two.
Fitted of_both(const Fitted& a, const Fitted& b) {
    if (!a || !b) return std::nullopt;
    return search::Standing{std::max(a->time, b->time), std::max(a->peak, b->peak)};
}

// A way's replicas, run with one recomputation for all of them.
class ReplicasOfWay {
public:
    ReplicasOfWay(std::size_t replicas, std::string_view policy, const std::vector<Recompute>& settings, bool by_rank,
                  Lend lend, Executor execute, bool keeps_schedules, IsLate is_late = {})
        : replicas_(replicas),
          has_order_(search::policy(policy).fixed_order),
          settings_(settings),
          by_rank_(by_rank && has_order_),
          lend_(std::move(lend)),
          execute_(std::move(execute)),
          keeps_schedules_(keeps_schedules),
          is_late_(std::move(is_late)) {}

    WayResult under(const StepRecompute& setting) const {
        WayResult result{.recompute = setting, .replicas = std::vector<ReplicaRun>(replicas_)};
        std::atomic<bool> is_over = false;  // once one does not fit nothing is asked of the others
        const std::string shortage = for_each([&](std::size_t r, const Lent& lent) {
            if (is_over) return;
            auto run = lent.runs.run(setting);
            if (!run) {
                is_over = true;
                return;
            }
            if (lent.step.input.setup->recipe.bucket > Bytes{})
                run->makespan = replay_in_full(lent.step, false, run->schedule).replay.makespan;
            if (!keeps_schedules_) run->schedule = {};
            result.replicas[r] = std::move(*run);
        });
        if (is_over || !shortage.empty()) return {.why_not = "not all replicas fit with recompute " + name_of(setting)};
        return with_slowest(std::move(result));
    }

    // Under the setting that is fastest; that is run once more only for what was not kept of its runs.
    WayResult fastest() const {
        WayResult refused;
        auto best = fastest_setting(refused);
        if (!best) return refused;
        if (keeps_schedules_ || best->in_buckets) return under(best->setting);
        return with_slowest({.recompute = best->setting, .replicas = std::move(best->replicas)});
    }

private:
    struct Fastest {
        StepRecompute setting;
        std::vector<ReplicaRun> replicas;  // without schedules, and without what reductions in buckets add
        bool in_buckets = false;           // there are some
    };

    // What was run on one replica with each setting.
    struct RunsOfReplica {
        std::vector<std::optional<ReplicaRun>> under;
        std::vector<Fitted> fitted;
        std::string refused{};  // of the last setting for all ranks, which holds least
        Bytes short_by{};
        bool in_buckets = false;
    };

    static WayResult with_slowest(WayResult result) {
        for (const ReplicaRun& one : result.replicas) {
            if (one.step() <= result.step) continue;
            result.makespan = one.makespan;
            result.step = one.step();
        }
        return result;
    }

    // f(replica, step) for each; why the fullest that does not fit does not, of several the first.
    template <class F>
    std::string for_each(const F& f) const {
        std::vector<Refused> refused(replicas_);
        run_jobs(execute_, replicas_,
                 [&](std::size_t r) { refused[r] = lend_(r, [&](const Lent& lent) { f(r, lent); }); });
        const auto is_less_short = [](const Refused& a, const Refused& b) {
            return std::tuple(!a.why.empty(), a.short_by) < std::tuple(!b.why.empty(), b.short_by);
        };
        return std::max_element(refused.begin(), refused.end(), is_less_short)->why;
    }

    // The fewest blocks that all replicas fit with. None: some do with no number of them. Pre: the policy has an order.
    std::optional<std::size_t> fewest_blocks(std::string& why_not) const {
        std::vector<std::optional<std::size_t>> fewest(replicas_);
        why_not = for_each([&](std::size_t r, const Lent& lent) { fewest[r] = lent.runs.fewest_blocks(); });
        if (std::any_of(fewest.begin(), fewest.end(), [](const auto& one) { return !one; })) return std::nullopt;
        return **std::max_element(fewest.begin(), fewest.end(), [&](const auto& a, const auto& b) {
            return settings_[*a].layers < settings_[*b].layers;
        });
    }

    // Those that are worth running on all replicas.
    std::vector<StepRecompute> worth_running(std::string& why_not) const {
        const auto blocks = has_order_ ? fewest_blocks(why_not) : std::nullopt;
        std::vector<StepRecompute> worth;
        for (std::size_t s = 0; s < settings_.size(); ++s)
            if (!has_order_ || settings_[s].kind != Recompute::Kind::blocks || s == blocks)
                worth.push_back({.everywhere = settings_[s]});
        if (by_rank_) worth.push_back(recompute_by_rank);
        return worth;
    }

    void run_all(const std::vector<StepRecompute>& settings, const Lent& lent, RunsOfReplica& all) const {
        all.in_buckets = lent.step.input.setup->recipe.bucket > Bytes{};
        for (std::size_t s = 0; s < settings.size(); ++s) {
            if (is_late_ && is_late_()) {
                all.refused = no_time_left;
                all.short_by = {};
                return;
            }
            auto run = lent.runs.run(settings[s]);
            if (!run && (!settings[s].by_rank || all.refused.empty())) {
                all.refused = lent.runs.why_not();
                all.short_by = lent.runs.short_by();
            }
            if (!run) continue;
            all.fitted[s] = {run->step(), lent.runs.fullness(*run)};
            run->schedule = {};
            all.under[s] = std::move(run);
        }
        const bool fits = std::any_of(all.under.begin(), all.under.end(), [](const auto& one) { return one; });
        if (fits) all.refused.clear();
    }

    std::optional<Fastest> fastest_setting(WayResult& none) const {
        const auto settings = worth_running(none.why_not);
        if (!none.why_not.empty()) return std::nullopt;
        const std::size_t count = settings.size();
        std::vector<RunsOfReplica> runs(replicas_,
                                        {std::vector<std::optional<ReplicaRun>>(count), std::vector<Fitted>(count)});
        static_cast<void>(for_each([&](std::size_t r, const Lent& lent) { run_all(settings, lent, runs[r]); }));
        // The fullest says why.
        const auto is_less_short = [](const RunsOfReplica& a, const RunsOfReplica& b) {
            return std::tuple(!a.refused.empty(), a.short_by) < std::tuple(!b.refused.empty(), b.short_by);
        };
        const auto refused = std::max_element(runs.begin(), runs.end(), is_less_short);
        if (!refused->refused.empty()) {
            none.why_not = refused->refused;
            none.short_by = refused->short_by;
            return std::nullopt;
        }
        std::vector<Fitted>& all = runs.front().fitted;
        for (std::size_t r = 1; r < replicas_; ++r)
            for (std::size_t s = 0; s < count; ++s) all[s] = of_both(all[s], runs[r].fitted[s]);
        std::optional<std::size_t> best;
        for (std::size_t s = 0; s < count; ++s)
            if (all[s] && (!best || *all[s] < *all[*best])) best = s;
        if (!best) {
            none.why_not = "no recomputation fits all replicas";
            return std::nullopt;
        }
        Fastest fastest{.setting = settings[*best], .replicas = {}};
        for (RunsOfReplica& one : runs) {
            fastest.replicas.push_back(std::move(*one.under[*best]));
            fastest.in_buckets = fastest.in_buckets || one.in_buckets;
        }
        return fastest;
    }

    std::size_t replicas_;
    bool has_order_;
    const std::vector<Recompute>& settings_;
    bool by_rank_;
    Lend lend_;
    Executor execute_;  // in_order is made one where it is handed over
    bool keeps_schedules_;
    IsLate is_late_;
};

// Why microbatches are no whole groups where the target interleaves those alone; empty if they are.
std::string why_no_groups(const Target& target, const Step& step, std::string_view policy) {
    const auto ranks = step.cut.step.problem.ranks.size(), microbatches = step.input.units.size();
    if (target.launch.splits_groups || policy != search::interleaved_policy || microbatches % ranks == 0) return {};
    return fmt::format("{} interleaves microbatches in groups of {}, and {} leave a group of {}", target.option, ranks,
                       microbatches, microbatches % ranks);
}

std::string why_not_run(const Target& target, const Step& step, std::string_view policy) {
    return step.shortage ? step.shortage->text() : why_no_groups(target, step, policy);
}

Refused refused_by(const Target& target, const Step& step, std::string_view policy) {
    return {why_not_run(target, step, policy), step.shortage ? step.shortage->short_by() : Bytes{}};
}

// Steps at hand, each with what has been worked out of it.
WayResult run_known(const std::vector<const Step*>& steps, std::string_view policy,
                    const std::vector<Recompute>& settings, const Target& target, bool by_rank,
                    const std::optional<StepRecompute>& recompute, bool keeps_schedules, const IsLate& is_late = {}) {
    std::vector<std::optional<StepUnderPolicy>> runs(steps.size());
    const auto lend = [&](std::size_t r, const std::function<void(Lent)>& use) {
        Refused refused = refused_by(target, *steps[r], policy);
        if (!refused.why.empty()) return refused;
        if (!runs[r]) runs[r].emplace(steps[r]->cut.step, policy, settings);
        use({*steps[r], *runs[r]});
        return refused;
    };
    const ReplicasOfWay all(steps.size(), policy, settings, by_rank, lend, in_order, keeps_schedules, is_late);
    if (recompute)
        if (WayResult said = all.under(*recompute); said.runs()) return said;
    return all.fastest();
}

// Replicas whose steps are built when they are lent. Of such with equal microbatches there is one.
class LentInTurn {
public:
    // As they are run.
    LentInTurn(const Way& way, std::vector<Microbatches> replicas, const Executor& execute)
        : way_(way), replicas_(std::move(replicas)), execute_(execute), like_(first_alike(replicas_)) {
        for (std::size_t r = 0; r < like_.size(); ++r)
            if (like_[r] == r) different_.push_back(r);
    }

    // With one setting, if it is said, else with the fastest.
    WayResult run(const WayOfTarget& runs, std::size_t most_tasks, const std::optional<StepRecompute>& said) const {
        const ReplicasOfWay all(different_.size(), way_.policy, runs.settings, runs.by_rank, lend(runs, most_tasks),
                                execute_, false);
        WayResult result = said ? all.under(*said) : all.fastest();
        if (!result.runs()) return result;
        std::vector<ReplicaRun> of_each;
        for (const std::size_t first : like_) {
            const auto place = std::lower_bound(different_.begin(), different_.end(), first) - different_.begin();
            of_each.push_back(result.replicas[static_cast<std::size_t>(place)]);
        }
        result.replicas = std::move(of_each);
        return result;
    }

private:
    Lend lend(const WayOfTarget& runs, std::size_t most_tasks) const {
        return [this, &runs, most_tasks](std::size_t k, const std::function<void(Lent)>& use) -> Refused {
            auto units = partition::units(way_.partition, way_.setup->model, replicas_[different_[k]]);
            if (const std::size_t tasks = count_tasks(way_.partition, units); tasks > most_tasks)
                return {fmt::format("a replica has {} tasks, which are more than {}", tasks, most_tasks)};
            const Step step = runs.build(way_, std::move(units));
            Refused refused = refused_by(*runs.target, step, way_.policy);
            if (!refused.why.empty()) return refused;
            StepUnderPolicy one(step.cut.step, way_.policy, runs.settings);
            use({step, one});
            return refused;
        };
    }

    const Way& way_;
    const std::vector<Microbatches> replicas_;
    const Executor& execute_;
    std::vector<std::size_t> like_, different_;
};

// Those of opponent_settings() that the target can be told, with what its `selective` does, and what the way itself
// says, whatever it is.
std::vector<Recompute> settings_of(const Way& way, const Target& target) {
    const Setup& setup = *way.setup;
    auto all = opponent_settings(setup, way.partition);
    if (!target.launch.blocks)
        std::erase_if(all, [](const Recompute& one) { return one.kind == Recompute::Kind::blocks; });
    const Recompute selective = selective_of(target.launch, setup.recipe.execution.fused_attention);
    std::replace(all.begin(), all.end(), Recompute::selective, selective);
    std::erase(all, Recompute::core_attention);
    if (way.recompute)
        for (const Recompute one : said_in(*way.recompute))
            if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    return all;
}

// The problem with one mode for each pair.
Problem in_modes(Problem problem, const std::vector<std::uint32_t>& modes) {
    for (std::size_t k = 0; k < problem.pairs.size(); ++k) {
        Pair& pair = problem.pairs[k];
        pair.modes = {pair.modes[modes[k]]};
        const auto costs = costs_in(pair, pair.modes.front());
        apply(problem.tasks[index(pair.forward)], costs[0]);
        apply(problem.tasks[index(pair.backward)], costs[1]);
        if (pair.weight) apply(problem.tasks[index(*pair.weight)], costs[2]);
    }
    return problem;
}

}  // namespace

// Of a setting that the target cannot be told no rank has a part: its command would not say so. Where a replica is one
// rank, by rank would be another setting for each replica, which nobody launches.
WayOfTarget::WayOfTarget(const Way& way, const Target& asked)
    : target(launches(asked, way) ? &asked : &targets().front()),
      settings(settings_of(way, *target)),
      by_rank(target->launch.by_rank && way.setup->layout.pp > 1 &&
              settings == opponent_settings(*way.setup, way.partition)) {}

WayOfTarget WayOfTarget::as_said(const Way& way, const Target& target) {
    WayOfTarget said(way, target);
    said.by_rank = way.recompute == recompute_by_rank;
    said.settings = said.by_rank ? opponent_settings(*way.setup, way.partition) : said_in(*way.recompute);
    return said;
}

Step WayOfTarget::build(const Way& way, Units units) const {
    return planner::build(*way.setup, way.partition, std::move(units),
                          {.name = "opponent", .target = target, .menu = settings, .priced_split = false});
}

std::vector<Microbatches> some_as_run(const Way& way, const Target& target, const std::vector<Microbatches>& all,
                                      const std::vector<std::size_t>& numbers) {
    const auto pick = [&](const std::vector<Microbatches>& from) {
        std::vector<Microbatches> some;
        for (const std::size_t number : numbers) some.push_back(from[number]);
        return some;
    };
    const Layout& layout = way.setup->layout;
    return launches(target, way) && pads(target, layout) ? pick(as_run_by(target, layout, all)) : pick(all);
}

BuiltWay::BuiltWay(const Way& way, std::vector<Microbatches> replicas, const Target& target) : runs_(way, target) {
    replicas = as_run_by(*runs_.target, way.setup->layout, std::move(replicas));
    for (const Microbatches& one : replicas) {
        auto units = partition::units(way.partition, way.setup->model, one);
        require_plannable(one.size(), count_tasks(way.partition, units));
        known_.push_back(runs_.build(way, std::move(units)));
    }
}

WayResult BuiltWay::run(std::string_view policy, const std::optional<StepRecompute>& recompute, bool keeps_schedules,
                        const IsLate& is_late) const {
    std::vector<const Step*> steps;
    for (const Step& one : known_) steps.push_back(&one);
    WayResult result =
        run_known(steps, policy, runs_.settings, *runs_.target, runs_.by_rank, recompute, keeps_schedules, is_late);
    if (!result.runs())
        for (const Step& one : known_)
            if (one.shortage) result.short_by = std::max(result.short_by, one.shortage->short_by());
    return result;
}

WayResult run_way(const Way& way, std::vector<Microbatches> replicas, const Target& target, bool exactly,
                  const Executor& execute) {
    const WayOfTarget open(way, target);
    const LentInTurn all(way, as_run_by(*open.target, way.setup->layout, std::move(replicas)), execute);
    if (way.recompute) {
        // With one mode a step is small: as many tasks as are emulated.
        const bool fixed_order = search::policy(way.policy).fixed_order;
        WayResult said = all.run(WayOfTarget::as_said(way, target),
                                 fixed_order && way.recompute != recompute_by_rank ? sizes.tasks_in_order : sizes.tasks,
                                 way.recompute);
        if (said.runs() || exactly) return said;
    }
    return all.run(open, sizes.tasks, std::nullopt);
}

WayResult run_steps(const std::vector<const Step*>& steps, std::string_view policy,
                    const std::vector<Recompute>& settings, const std::optional<StepRecompute>& recompute,
                    bool keeps_schedules) {
    const bool has_ranks = steps.front()->cut.step.problem.ranks.size() > 1;
    return run_known(steps, policy, settings, targets().front(), has_ranks, recompute, keeps_schedules);
}

StepUnderPolicy::StepUnderPolicy(const StepProblem& step, std::string_view policy,
                                 const std::vector<Recompute>& settings)
    : step_(step),
      policy_(policy),
      settings_(settings),
      replayer_(step.problem),
      has_order_(search::policy(policy).fixed_order) {
    for ([[maybe_unused]] const Pair& pair : step.problem.pairs)
        PIPEWEAVER_ASSERT(pair.modes.size() == settings.size());
    if (has_order_) order_ = search::fixed_order(policy_, replayer_);
    why_not_ = order_.why_not;
}

std::optional<ReplicaRun> StepUnderPolicy::run(const StepRecompute& setting) {
    if (!order_.why_not.empty()) return std::nullopt;
    if (auto modes = modes_of(setting)) {
        auto run = run_in(std::move(*modes));
        if (run) run->by_rank = setting.of_ranks;
        return run;
    }
    if (setting != recompute_by_rank || !has_order_) {
        why_not_ = fmt::format("{} cannot recompute {}", policy_, name_of(setting));
        return std::nullopt;
    }
    auto run = taken(search::apply_policy_by_rank(policy_, replayer_));
    if (run) run->by_rank = recompute_of_ranks(step_.problem, run->schedule, settings_);
    return run;
}

std::optional<std::size_t> StepUnderPolicy::fewest_blocks() const {
    if (!order_.why_not.empty()) return std::nullopt;
    std::vector<std::size_t> blocks;
    for (std::size_t i = 0; i < settings_.size(); ++i)
        if (settings_[i].kind == Recompute::Kind::blocks) blocks.push_back(i);
    std::sort(blocks.begin(), blocks.end(),
              [&](std::size_t i, std::size_t j) { return settings_[i].layers < settings_[j].layers; });
    search::OrderMemory memory(replayer_, order_);
    const auto fits = [&](std::size_t setting) {
        for (std::size_t r = 0; r < order_.ranks.size(); ++r)
            if (!memory.fits(r, static_cast<std::uint32_t>(setting))) return false;
        return true;
    };
    const auto found = std::find_if(blocks.begin(), blocks.end(), fits);
    return found == blocks.end() ? std::nullopt : std::optional(*found);
}

double StepUnderPolicy::fullness(const ReplicaRun& run) const { return search::largest_peak(step_.problem, run.peak); }

std::optional<std::vector<std::uint32_t>> StepUnderPolicy::modes_of(const StepRecompute& setting) const {
    const Problem& problem = step_.problem;
    if (setting.by_rank && setting.of_ranks.size() != problem.ranks.size()) return std::nullopt;
    std::vector<std::uint32_t> modes;
    for (const Pair& pair : problem.pairs) {
        const std::size_t rank = index(problem.tasks[index(pair.forward)].rank);
        const Recompute one = setting.by_rank ? setting.of_ranks[rank] : setting.everywhere;
        const auto found = std::find(settings_.begin(), settings_.end(), one);
        if (found == settings_.end()) return std::nullopt;
        modes.push_back(static_cast<std::uint32_t>(found - settings_.begin()));
    }
    return modes;
}

std::optional<ReplicaRun> StepUnderPolicy::run_in(std::vector<std::uint32_t> modes) {
    if (!has_order_) {
        const Problem alone = in_modes(step_.problem, modes);
        auto result = search::apply_policy(policy_, Replayer(alone));
        if (result.schedule) result.schedule->mode = std::move(modes);
        return taken(std::move(result));
    }
    search::PolicyResult result{Schedule{order_.ranks, std::move(modes)}, {}, {}};
    const Replay replay = replayer_.replay(*result.schedule);
    if (replay.outcome != Outcome::completed) result = {{}, {}, why_it_fails(step_.problem, replay)};
    if (replay.outcome == Outcome::out_of_memory) result.short_by = replay.short_by;
    return taken(std::move(result));
}

std::optional<ReplicaRun> StepUnderPolicy::taken(search::PolicyResult result) {
    why_not_ = std::move(result.why_not);
    short_by_ = result.short_by;
    if (!result.schedule) return std::nullopt;
    PortReplay on_ports = replay_on_ports(step_, *result.schedule);
    return ReplicaRun{.schedule = std::move(*result.schedule),
                      .makespan = on_ports.replay.makespan,
                      .optimizer = step_.optimizer,
                      .peak = peaks_of(step_, std::move(on_ports.replay.peak)),
                      .by_rank = {}};
}

}  // namespace pipeweaver::planner
