#include "pipeweaver/planner/host_bound.hpp"

#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

namespace pipeweaver::planner {

namespace {

// What the host must add for it to be the host, and the range that is worth telling. Of measured rows that were run
// kernel by kernel, those with 5 to 10 % of it took up to 1.8 times their step as often as those with more.
constexpr double least_host = 1.05, least_range = 1.1;

bool is_timed(const emulator::Recipe& recipe) { return recipe.anchored && recipe.anchored->has_step(); }

}  // namespace

std::optional<emulator::Setup> waiting_for_host(const emulator::Setup& setup) {
    const bool has_kernels = setup.cluster.device != "cpu";
    if (!has_kernels || !is_open(setup.recipe) || is_timed(setup.recipe)) return std::nullopt;
    emulator::Setup waiting = setup;
    waiting.recipe = launched_as(setup.recipe, emulator::Launched::eager);
    waiting.store = std::make_shared<emulator::LayerStore>();
    return waiting;
}

std::optional<HostBound> host_bound_of(const emulator::Setup& waiting, Duration near, Duration eager) {
    const emulator::Recipe& recipe = waiting.recipe;
    const bool routes = routes_to_experts(waiting.model);
    HostBound bound{.as = recipe.eager,
                    .layer = recipe.layer,
                    .expert_layer = routes ? recipe.expert_layer : Duration{},
                    .step = eager,
                    .far = routes ? recipe.far_with_experts : recipe.far};
    if (ratio(eager, near) < least_host || ratio(bound.most(), near) < least_range) return std::nullopt;
    return bound;
}

Duration HostBound::most() const { return Duration{std::llround(far * static_cast<double>(step.count()))}; }

std::size_t HostBound::rank() const {
    return static_cast<std::size_t>(std::max_element(waits.begin(), waits.end()) - waits.begin());
}

}  // namespace pipeweaver::planner
