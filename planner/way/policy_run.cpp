#include "planner/way/policy_run.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/search/standing.hpp"
#include "planner/way/settings.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;
using namespace schedule;

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

}  // namespace

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
    if (!setting.by_rank) {
        const auto found = std::find(settings_.begin(), settings_.end(), setting.everywhere);
        if (found != settings_.end()) return uniform(static_cast<std::size_t>(found - settings_.begin()));
    }
    if (!setting.by_rank || !has_order_) {
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

std::optional<ReplicaRun> StepUnderPolicy::uniform(std::size_t setting) {
    const std::vector<std::uint32_t> modes(step_.problem.pairs.size(), static_cast<std::uint32_t>(setting));
    if (!has_order_) {
        const Problem alone = in_mode(step_.problem, setting);
        auto result = search::apply_policy(policy_, Replayer(alone));
        if (result.schedule) result.schedule->mode = modes;
        return taken(std::move(result));
    }
    search::PolicyResult result{Schedule{order_.ranks, modes}, {}, {}};
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
    auto& peak = on_ports.replay.peak;
    for (std::size_t r = 0; r < peak.size(); ++r) peak[r] = std::max(peak[r], step_.memory[r].at_update);
    return ReplicaRun{.schedule = std::move(*result.schedule),
                      .makespan = on_ports.replay.makespan,
                      .optimizer = step_.optimizer,
                      .peak = std::move(peak),
                      .by_rank = {}};
}

}  // namespace pipeweaver::planner
