#include "pipeweaver/planner/host_bound.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace pipeweaver::planner {

namespace {

Duration waits_of(const emulator::RankTime& time) {
    return time.exposed[static_cast<std::size_t>(emulator::Stream::host)];
}

// Its layers are compiled into nothing that a host launches.
bool is_launched(const emulator::Setup& setup) { return setup.cluster.device != "cpu"; }

bool is_timed(const emulator::Recipe& recipe) { return recipe.anchored && recipe.anchored->has_step(); }

}  // namespace

std::optional<HostBound> host_bound(const EmulationRequest& request, const Emulation& emulation,
                                    const Executor& execute) {
    constexpr double least = 1.1;
    emulator::Setup setup = *request.job.setup;
    auto launched = emulator::launched_by_host(setup.recipe);
    if (!launched || !is_launched(setup) || is_timed(setup.recipe)) return std::nullopt;
    if (!request.schedules.empty()) return std::nullopt;  // with other times they would be of another problem
    setup.recipe = launched->recipe;
    setup.store = std::make_shared<emulator::LayerStore>();
    EmulationRequest changed = request;
    changed.job.setup = std::make_shared<const emulator::Setup>(std::move(setup));
    changed.any_memory = true;
    changed.recompute = emulation.recompute;
    const auto made = try_emulate(changed, execute);
    if (!made.emulation) return std::nullopt;
    const auto& ranks = made.emulation->replicas[made.emulation->slowest].time;
    const auto most = std::max_element(ranks.begin(), ranks.end(),
                                       [](const auto& a, const auto& b) { return waits_of(a) < waits_of(b); });
    HostBound bound{.as = std::move(launched->as),
                    .layer = launched->recipe.layer,
                    .expert_layer = launched->recipe.expert_layer,
                    .step = made.emulation->step,
                    .rank = static_cast<std::size_t>(most - ranks.begin()),
                    .waits = waits_of(*most)};
    const double times = static_cast<double>(bound.step.count()) / static_cast<double>(emulation.step.count());
    return times < least ? std::nullopt : std::optional(std::move(bound));
}

}  // namespace pipeweaver::planner
