#include "planner/schedule/recompute_settings.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/standing.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;
using namespace schedule;

std::vector<Recompute> usual_settings(const Setup& setup, const partition::Partition& partition) {
    const auto reached = workloads::gradient_reaches(setup.model);
    std::int64_t most = 0;
    for (const Chain& chain : partition.chains)
        for (const StageLayers& stage : chain.stages)
            for (const LayerRange& part : stage.parts)
                if (reached[part.module]) most = std::max(most, part.count);
    std::vector<Recompute> settings{Recompute::none, Recompute::selective};
    for (std::int64_t n = 1; n < most; ++n) settings.push_back(Recompute::blocks(n));
    settings.push_back(Recompute::full);
    return settings;
}

std::vector<Recompute> opponent_settings(const Setup& setup, const partition::Partition& partition) {
    auto all = usual_settings(setup, partition);
    if (setup.recipe.is_serial()) return all;
    const auto layers = static_cast<std::int64_t>(all.size()) - 2;
    return {Recompute::none,
            Recompute::selective,
            Recompute::blocks(std::max<std::int64_t>(1, layers / 4)),
            Recompute::blocks(std::max<std::int64_t>(1, layers / 3)),
            Recompute::blocks(std::max<std::int64_t>(1, layers / 2)),
            Recompute::full};
}

std::vector<Recompute> recompute_of_ranks(const Problem& problem, const Schedule& schedule,
                                          const std::vector<Recompute>& menu) {
    std::vector<Recompute> ranks(problem.ranks.size(), Recompute::none);
    for (std::size_t k = 0; k < problem.pairs.size(); ++k)
        ranks[index(problem.tasks[index(problem.pairs[k].forward)].rank)] = menu[schedule.mode[k]];
    return ranks;
}

namespace {

// The problem with one mode for each pair.
Problem in_mode(Problem problem, std::size_t mode) {
    for (Pair& pair : problem.pairs) {
        pair.modes = {pair.modes[mode]};
        const auto costs = costs_in(pair, pair.modes.front());
        apply(problem.tasks[index(pair.forward)], costs[0]);
        apply(problem.tasks[index(pair.backward)], costs[1]);
        if (pair.weight) apply(problem.tasks[index(*pair.weight)], costs[2]);
    }
    return problem;
}

// A step under one policy, to be run under one setting after another.
class Runner {
public:
    Runner(const StepProblem& step, std::string_view policy, const std::vector<Recompute>& settings)
        : step_(step),
          policy_(policy),
          settings_(settings),
          replayer_(step.problem),
          has_order_(search::policy(policy).fixed_order) {
        for ([[maybe_unused]] const Pair& pair : step.problem.pairs)
            PIPEWEAVER_ASSERT(pair.modes.size() == settings.size());
        if (has_order_) order_ = search::fixed_order(policy, replayer_);
        why_not_ = order_.why_not;
    }

    bool has_order() const { return has_order_; }
    const std::string& why_not() const { return why_not_; }

    std::optional<SettingRun> uniform(std::size_t setting) {
        if (!order_.why_not.empty()) return std::nullopt;
        const std::vector<std::uint32_t> modes(step_.problem.pairs.size(), static_cast<std::uint32_t>(setting));
        if (!has_order_) {
            const Problem alone = in_mode(step_.problem, setting);
            auto result = search::apply_policy(policy_, Replayer(alone));
            if (result.schedule) result.schedule->mode = modes;
            return taken(std::move(result), name_of(settings_[setting]));
        }
        search::PolicyResult result{Schedule{order_.ranks, modes}, {}, {}};
        const Replay replay = replayer_.replay(*result.schedule);
        if (replay.outcome != Outcome::completed) result = {{}, {}, why_it_fails(step_.problem, replay)};
        return taken(std::move(result), name_of(settings_[setting]));
    }

    // Pre: has_order().
    std::optional<SettingRun> by_rank() {
        auto run = taken(search::apply_policy_by_rank(policy_, replayer_), std::string(by_rank_name));
        if (run) run->by_rank = recompute_of_ranks(step_.problem, run->schedule, settings_);
        return run;
    }

    // Those that the shortest uniform one is among; the others of blocks:N run more again than one that fits.
    std::vector<std::size_t> worth_running() const {
        std::vector<std::size_t> worth, blocks;
        for (std::size_t i = 0; i < settings_.size(); ++i)
            (has_order_ && settings_[i].kind == Recompute::Kind::blocks ? blocks : worth).push_back(i);
        if (const auto fewest = fewest_that_fit(std::move(blocks)))
            worth.insert(std::lower_bound(worth.begin(), worth.end(), *fewest), *fewest);
        return worth;
    }

private:
    std::optional<std::size_t> fewest_that_fit(std::vector<std::size_t> blocks) const {
        if (!order_.why_not.empty()) return std::nullopt;
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

    std::optional<SettingRun> taken(search::PolicyResult result, std::string name) {
        if (!result.schedule) {
            why_not_ = std::move(result.why_not);
            return std::nullopt;
        }
        PortReplay on_ports = replay_on_ports(step_, *result.schedule);
        return SettingRun{.recompute = std::move(name),
                          .by_rank = {},
                          .schedule = std::move(*result.schedule),
                          .makespan = on_ports.replay.makespan,
                          .peak = std::move(on_ports.replay.peak),
                          .waits = on_ports.waits};
    }

    const StepProblem& step_;
    std::string_view policy_;
    const std::vector<Recompute>& settings_;
    Replayer replayer_;
    bool has_order_;
    search::PolicyOrder order_;
    std::string why_not_;  // of what was run last
};

}  // namespace

std::optional<SettingRun> fastest_setting(const StepProblem& step, std::string_view policy,
                                          const std::vector<Recompute>& settings, std::string& why_not, bool by_rank) {
    Runner runner(step, policy, settings);
    std::optional<SettingRun> best;
    const auto standing = [&step](const SettingRun& run) {
        return search::Standing{run.makespan, search::largest_peak(step.problem, run.peak)};
    };
    const auto offer = [&](std::optional<SettingRun> run) {
        if (run && (!best || standing(*run) < standing(*best))) best = std::move(run);
    };
    for (const std::size_t setting : runner.worth_running()) offer(runner.uniform(setting));
    if (by_rank && runner.has_order()) offer(runner.by_rank());
    why_not = best ? std::string() : runner.why_not();
    return best;
}

std::optional<SettingRun> run_setting(const StepProblem& step, std::string_view policy,
                                      const std::vector<Recompute>& settings, std::string_view name) {
    Runner runner(step, policy, settings);
    if (name == by_rank_name) return runner.has_order() ? runner.by_rank() : std::nullopt;
    const auto found =
        std::find_if(settings.begin(), settings.end(), [&](const Recompute& one) { return name_of(one) == name; });
    if (found == settings.end()) return std::nullopt;
    return runner.uniform(static_cast<std::size_t>(found - settings.begin()));
}

}  // namespace pipeweaver::planner
