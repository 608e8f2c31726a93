#include "pipeweaver/emulator/step_operators.hpp"

#include "emulator/pricing/stage_walk.hpp"
#include "emulator/step/phases.hpp"
#include "emulator/step/step_parts.hpp"

namespace pipeweaver::emulator {

namespace {

void visit_all(const std::vector<Operator>& operators, std::int64_t times, const OperatorVisitor& visit) {
    for (const Operator& op : operators) visit(op, times);
}

void visit_pass(const StepInput& input, const workloads::Model& model, const StageLayers& stage, const Unit& unit,
                PassKind pass, const OperatorVisitor& visit) {
    const auto modules = input.placed();
    walk_stage(
        model, modules, gradient_reaches(model), input.setup->recipe, stage, unit.shapes, pass,
        [&](const LayerRange& part, PassKind here, const PassShape& shape) {
            const auto& module = model.modules[part.module];
            walk_layers(
                model, part,
                [&](std::int64_t first, std::int64_t alike) {
                    visit_all(layer_operators(module.architecture, shape, modules[part.module].layout, here, first,
                                              input.setup->recipe.execution_of(module, first)),
                              alike, visit);
                },
                &input.setup->recipe);
        },
        [&](const AroundBlocks& around) { visit_all(around.operators(), 1, visit); });
}

// Forward and backward, and in front of them the forward of the model beside it.
void visit_passes(const StepInput& input, const StageLayers& stage, const Unit& unit, const OperatorVisitor& visit) {
    const workloads::Model& model = input.setup->model;
    if (const auto beside = workloads::model_beside(model))
        visit_pass(input, *beside, stage_beside(model, *beside, stage), unit, PassKind::forward, visit);
    for (const PassKind pass : {PassKind::forward, PassKind::backward})
        visit_pass(input, model, stage, unit, pass, visit);
}

void visit_phases(const StepInput& input, const OperatorVisitor& visit) {
    const auto phases = phase_modules(input.layouts);
    if (phases.empty()) return;
    const auto stage_of = [&](std::size_t module) {
        return StageLayers{RankId{0}, {{module, 0, input.setup->model.modules[module].architecture.layers}}};
    };
    for (const auto& microbatch : input.units)
        for (std::size_t d = 0; d < phases.size(); ++d)
            for (const Unit& item : microbatch[input.chains.size() + d])
                visit_passes(input, stage_of(phases[d]), item, visit);
    if (const auto sent = exchange_of(input)) visit({"transfer", *sent, {}}, 1);
}

}  // namespace

void visit_operators(const StepInput& input, const StepProblem& step, const OperatorVisitor& visit) {
    for (const auto& microbatch : input.units)
        for (std::size_t c = 0; c < input.chains.size(); ++c)
            for (const Unit& unit : microbatch[c])
                for (const StageLayers& stage : input.chains[c].stages) visit_passes(input, stage, unit, visit);
    visit_phases(input, visit);
    for (const Transfer& transfer : step.transfers)
        if (transfer.asked) visit({"transfer", *transfer.asked, {}}, 1);
    visit_all(ends_of_ranks(input), 1, visit);
}

}  // namespace pipeweaver::emulator
