#include "planner/opponents/built_steps.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

// What is said to be run is among them, whatever it is.
std::vector<Recompute> settings_of(const Target& target, const OpponentWay& way) {
    const Setup& setup = *way.setup;
    auto all = opponent_settings(setup, way.partition);
    if (!target.launch.blocks)
        std::erase_if(all, [](const Recompute& one) { return one.kind == Recompute::Kind::blocks; });
    if (target.launch.selective != Recompute::selective && setup.recipe.execution.fused_attention)
        std::erase(all, Recompute::selective);
    const auto said = recompute_named(way.recompute);
    if (said && std::find(all.begin(), all.end(), *said) == all.end()) all.push_back(*said);
    return all;
}

// Why microbatches are no whole groups where the target interleaves those alone; empty if they are.
std::string why_no_groups(const Target& target, const Step& step, std::string_view policy) {
    const auto ranks = step.cut.step.problem.ranks.size(), microbatches = step.input.units.size();
    if (target.launch.splits_groups || policy != "interleaved" || microbatches % ranks == 0) return {};
    return fmt::format("{} interleaves microbatches in groups of {}, and {} leave a group of {}", target.option, ranks,
                       microbatches, microbatches % ranks);
}

void take_slower(Ran& slowest, Duration makespan, const Step& of) {
    const Duration step = makespan + of.cut.step.optimizer;
    if (step <= slowest.step) return;
    slowest.makespan = makespan;
    slowest.step = step;
}

}  // namespace

BuiltSteps::BuiltSteps(const OpponentWay& way, const std::vector<Microbatches>& replicas, const Target& target)
    : target_(launches(target, way) ? &target : &targets().front()), settings_(settings_of(*target_, way)) {
    for (const Microbatches& microbatches : replicas) {
        known_.push_back(build(*way.setup, way.partition, as_run_by(*target_, microbatches),
                               {.name = "opponent",
                                .target = target_,
                                .menu = settings_,
                                .priced_split = false,
                                .most_tasks = sizes.tasks}));
        if (known_.back().shortage) break;
    }
}

std::optional<SettingRun> BuiltSteps::scheduled(std::size_t replica, std::string_view policy,
                                                const std::string& recompute, std::string& why_not) const {
    std::optional<SettingRun> found;
    const Step& known = known_[replica];
    why_not = known.shortage ? known.shortage->text() : why_no_groups(*target_, known, policy);
    if (!why_not.empty()) return found;
    if (!recompute.empty()) found = run_setting(known.cut.step, policy, settings_, recompute);
    if (!found) found = fastest_setting(known.cut.step, policy, settings_, why_not, target_->launch.by_rank);
    return found;
}

Ran BuiltSteps::run(std::string_view policy, const std::string& recompute) const {
    std::vector<std::string> settings;
    Ran ran;
    for (std::size_t r = 0; r < known_.size(); ++r) {
        const auto found = scheduled(r, policy, recompute, ran.why_not);
        if (!found) return ran;
        if (std::find(settings.begin(), settings.end(), found->recompute) == settings.end())
            settings.push_back(found->recompute);
    }
    std::optional<Ran> best;
    for (const std::string& setting : settings)
        if (auto all = with_setting(policy, setting); all && (!best || all->step < best->step)) best = all;
    if (best) return in_full(policy, *best);
    ran.why_not = "no recomputation fits all replicas";
    return ran;
}

std::optional<Ran> BuiltSteps::with_setting(std::string_view policy, const std::string& setting) const {
    Ran slowest{setting, {}, {}, {}};
    for (const Step& known : known_) {
        const auto found = run_setting(known.cut.step, policy, settings_, setting);
        if (!found) return std::nullopt;
        take_slower(slowest, found->makespan, known);
    }
    return slowest;
}

// With what reductions in buckets add. Settings are chosen without it.
Ran BuiltSteps::in_full(std::string_view policy, const Ran& chosen) const {
    if (known_.front().input.setup->recipe.bucket == Bytes{}) return chosen;
    Ran slowest{chosen.recompute, {}, {}, {}};
    for (const Step& known : known_) {
        const auto found = run_setting(known.cut.step, policy, settings_, chosen.recompute);
        take_slower(slowest, replay_in_full(known, false, found->schedule).replay.makespan, known);
    }
    return slowest;
}

}  // namespace pipeweaver::planner
