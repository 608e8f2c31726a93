#include "planner/way/settings.hpp"

#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;
using namespace schedule;

namespace {

constexpr std::string_view by_rank_name = "by-rank";

}  // namespace

std::string name_of(const StepRecompute& setting) {
    return setting.by_rank ? std::string(by_rank_name) : name_of(setting.everywhere);
}

std::optional<StepRecompute> step_recompute_named(std::string_view name) {
    if (name == by_rank_name) return recompute_by_rank;
    const auto everywhere = recompute_named(name);
    return everywhere ? std::optional(StepRecompute{.everywhere = *everywhere}) : std::nullopt;
}

std::vector<std::string> step_recompute_names() {
    auto names = recompute_names();
    names.emplace_back(by_rank_name);
    return names;
}

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

std::vector<Recompute> settings_of(const Way& way, const Target& target) {
    const Setup& setup = *way.setup;
    auto all = opponent_settings(setup, way.partition);
    if (!target.launch.blocks)
        std::erase_if(all, [](const Recompute& one) { return one.kind == Recompute::Kind::blocks; });
    if (target.launch.selective != Recompute::selective && setup.recipe.execution.fused_attention)
        std::erase(all, Recompute::selective);
    const bool is_said = way.recompute && !way.recompute->by_rank;
    if (is_said && std::find(all.begin(), all.end(), way.recompute->everywhere) == all.end())
        all.push_back(way.recompute->everywhere);
    return all;
}

std::vector<Recompute> recompute_of_ranks(const Problem& problem, const Schedule& schedule,
                                          const std::vector<Recompute>& menu) {
    std::vector<Recompute> ranks(problem.ranks.size(), Recompute::none);
    for (std::size_t k = 0; k < problem.pairs.size(); ++k)
        ranks[index(problem.tasks[index(problem.pairs[k].forward)].rank)] = menu[schedule.mode[k]];
    return ranks;
}

}  // namespace pipeweaver::planner
