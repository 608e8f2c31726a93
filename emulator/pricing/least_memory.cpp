#include "pipeweaver/emulator/least_memory.hpp"

#include "emulator/pricing/stage_memory.hpp"
#include "pipeweaver/emulator/shares.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

namespace {

StepInput input_of(const Setup& setup, std::vector<Chain> chains, const ModuleLayouts& layouts) {
    StepInput input;
    input.setup = &setup;
    input.chains = std::move(chains);
    input.layouts = layouts;
    return input;
}

}  // namespace

std::vector<StaticMemory> held_always(const Setup& setup, const std::vector<Chain>& chains,
                                      const ModuleLayouts& layouts) {
    return static_memory(input_of(setup, chains, layouts));
}

LeastPass least_pass(const Setup& setup, const StageLayers& stage, const std::vector<PassShape>& shapes,
                     const ModuleLayouts& layouts) {
    const auto reached = workloads::gradient_reaches(setup.model);
    const bool gradient = std::any_of(stage.parts.begin(), stage.parts.end(), [&](const LayerRange& part) {
        return reached[part.module] || trains(setup.model, part);
    });
    const auto memory = pass_memory(input_of(setup, {}, layouts), stage, shapes, Recompute::full, gradient);
    LeastPass least{memory.held, std::max(memory.forward_transient, memory.transient), {}};
    if (stage.parts.empty()) return least;
    const LayerRange& first = stage.parts.front();
    const auto& module = setup.model.modules[first.module];
    const PlacedModule placed = placed_modules(setup.layout, layouts, setup.model)[first.module];
    const OnCopy copy(module.architecture, shapes[first.module], placed.own, Fullest::by_positions);
    const std::int64_t positions = block_positions_of_group(module.architecture, copy.shape(), placed.layout);
    const std::int64_t wide = setup.recipe.execution_of(module).value_bytes() / 2;
    if (first.first > 0)
        least.message = wide * workloads::layer_input(module.architecture, positions, placed.layout.tp);
    return least;
}

}  // namespace pipeweaver::emulator
