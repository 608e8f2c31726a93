#include "pipeweaver/emulator/least_memory.hpp"

#include "emulator/pricing/stage_memory.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

namespace {

StepInput input_of(const Setup& setup, std::vector<Chain> chains) {
    StepInput input;
    input.setup = &setup;
    input.chains = std::move(chains);
    return input;
}

}  // namespace

std::vector<StaticMemory> held_always(const Setup& setup, const std::vector<Chain>& chains) {
    return static_memory(input_of(setup, chains));
}

LeastPass least_pass(const Setup& setup, const StageLayers& stage, const std::vector<PassShape>& shapes) {
    const auto reached = workloads::gradient_reaches(setup.model);
    const bool gradient = std::any_of(stage.parts.begin(), stage.parts.end(), [&](const LayerRange& part) {
        return reached[part.module] || trains(setup.model, part);
    });
    const auto memory = pass_memory(input_of(setup, {}), stage, shapes, Recompute::full, gradient);
    LeastPass least{memory.held, std::max(memory.forward_transient, memory.transient), {}};
    if (stage.parts.empty()) return least;
    const LayerRange& first = stage.parts.front();
    const auto& module = setup.model.modules[first.module];
    const std::int64_t positions = setup.layout.part(block_positions(module.architecture, shapes[first.module]));
    const std::int64_t wide = setup.recipe.execution_of(module).value_bytes() / 2;
    if (first.first > 0) least.message = wide * workloads::layer_input(module.architecture, positions, setup.layout.tp);
    return least;
}

}  // namespace pipeweaver::emulator
