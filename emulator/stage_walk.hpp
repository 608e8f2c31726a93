// What a pass through a stage consists of, in the order in which it is priced and listed.
#pragma once

#include "emulator/module_roles.hpp"
#include "pipeweaver/emulator/step.hpp"

#include <optional>
#include <vector>

namespace pipeweaver::emulator {

/// Calls `alike(first layer, how many)` for each row of like blocks of the range.
template <class Alike>
void walk_layers(const workloads::Model& model, const LayerRange& range, const Alike& alike) {
    const auto& network = model.modules[range.module].architecture;
    for (std::int64_t i = 0; i < range.count;) {
        const auto kind = workloads::block_kind(network, range.first + i);
        std::int64_t count = 1;
        while (i + count < range.count && workloads::block_kind(network, range.first + i + count) == kind) ++count;
        alike(range.first + i, count);
        i += count;
    }
}

/// What a pass does in a module that may be frozen; nothing: nothing at all.
inline std::optional<PassKind> pass_in(const workloads::Module& module, bool gradient, PassKind pass) {
    if (pass == PassKind::forward) return pass;
    if (!gradient || (pass == PassKind::weight_gradient && !module.trainable)) return std::nullopt;
    if (pass == PassKind::backward && !module.trainable) return PassKind::input_gradient;
    return pass;
}

/// Calls `layers(range, pass)` for the blocks of each part that has work, and `others(operators)` for embeddings, heads
/// and projectors.
template <class Layers, class Others>
void walk_stage(const workloads::Model& model, const Layout& layout, const StageLayers& stage,
                const std::vector<PassShape>& shapes, PassKind pass, const Layers& layers, const Others& others) {
    const auto gradient = gradient_reaches(model);
    for (const LayerRange& part : stage.parts) {
        const auto& module = model.modules[part.module];
        const auto& network = module.architecture;
        const PassShape& shape = shapes[part.module];
        const auto here = pass_in(module, gradient[part.module], pass);
        if (shape.lengths.empty() || !here) continue;
        layers(part, *here);
        if (part.first == 0 && network.vocab > 0) others(embedding_operators(network, shape, layout, *here));
        if (part.first + part.count < network.layers) continue;
        if (has_head(model, part.module)) others(head_operators(network, shape, layout, *here));
        for (const auto& edge : model.edges)
            if (edge.from == part.module && edge.projector_in > 0)
                others(projector_operators(edge, shape.positions() / edge.token_reduction, layout, *here));
    }
}

}  // namespace pipeweaver::emulator
