// What a pass through a stage consists of, in the order in which it is priced and listed.
#pragma once

#include "emulator/operators/head_network.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <optional>
#include <utility>
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

/// What a pass does with weights that may be frozen; none: nothing at all.
inline std::optional<PassKind> pass_with(bool trained, bool gradient, PassKind pass) {
    if (pass == PassKind::forward) return pass;
    if (!gradient || (pass == PassKind::weight_gradient && !trained)) return std::nullopt;
    if (pass == PassKind::backward && !trained) return PassKind::input_gradient;
    return pass;
}

/// What a pass does in the blocks of a module; where adapters alone are trained, the pass is theirs.
inline std::optional<PassKind> pass_in(const workloads::Module& module, bool gradient, PassKind pass) {
    return pass_with(module.trains(), gradient, pass);
}

/// The same of a projector, which may be trained after a frozen module and the other way round.
inline std::optional<PassKind> pass_in_projector(bool trained, bool gradient, PassKind pass) {
    if (pass == PassKind::forward) return pass;
    const bool input = gradient && pass != PassKind::weight_gradient;
    const bool weight = trained && pass != PassKind::input_gradient;
    if (input && weight) return PassKind::backward;
    if (input) return PassKind::input_gradient;
    return weight ? std::optional(PassKind::weight_gradient) : std::nullopt;
}

/// What stands in front of a module's blocks or after them.
struct AroundBlocks {
    std::vector<Operator> operators;
    std::size_t number = 0;  ///< tells those of a module apart
    std::size_t module = 0;
    PassKind pass = PassKind::forward;  ///< what the module does in it
    std::int64_t parameters = 0;        ///< of their weights, on one GPU
    bool in_front = false;
    bool loss = false;  ///< the output head
    bool trained = true;
};

/// Calls `layers(range, pass)` for the blocks of each part that has work, then `others(AroundBlocks)` for its
/// embedding, head and projectors.
template <class Layers, class Others>
void walk_stage(const workloads::Model& model, const Layout& layout, const Recipe& recipe, const StageLayers& stage,
                const std::vector<PassShape>& shapes, PassKind pass, const Layers& layers, const Others& others) {
    const auto gradient = gradient_reaches(model);
    for (const LayerRange& part : stage.parts) {
        const auto& module = model.modules[part.module];
        const auto& network = module.architecture;
        const PassShape& shape = shapes[part.module];
        const Execution execution = recipe.execution_of(module);
        const auto here = pass_in(module, gradient[part.module], pass);
        if (shape.lengths.empty()) continue;
        enum : std::size_t { embedding, inputs, outputs, loss, projector };  // of the module's first edge, and so on
        const auto add = [&](std::size_t number, std::vector<Operator> operators, std::int64_t parameters, PassKind own,
                             bool trained, bool in_front) {
            if (!operators.empty())
                others(AroundBlocks{std::move(operators), number, part.module, own, parameters / layout.tp, in_front,
                                    number == loss, trained});
        };
        const bool last = part.first + part.count == network.layers;
        const auto projectors = [&] {
            for (std::size_t e = 0; e < model.edges.size() && last; ++e) {
                const auto& edge = model.edges[e];
                if (edge.from != part.module || edge.projector_in == 0) continue;
                const bool trained = workloads::trains_projector(model, edge);
                if (const auto own = pass_in_projector(trained, gradient[part.module], pass))
                    add(projector + e,
                        projector_operators(edge, shape.positions() / edge.token_reduction, layout, *own, execution),
                        projector_parameters(edge), *own, trained, false);
            }
        };
        if (!here) {
            projectors();
            continue;
        }
        layers(part, *here);
        const auto outside = pass_with(module.trainable, gradient[part.module], pass);  // adapters are in blocks alone
        if (!outside) {
            projectors();
            continue;
        }
        const auto around = [&](std::size_t number, std::vector<Operator> operators, std::int64_t parameters,
                                bool in_front = false) {
            add(number, std::move(operators), parameters, *outside, module.trainable, in_front);
        };
        if (part.first == 0 && network.vocab > 0)
            around(embedding, embedding_operators(network, shape, layout, *outside, execution),
                   embedding_parameters(network), true);
        const bool head = network.kind == workloads::ModuleKind::head;
        if (head && part.first == 0) around(inputs, head_inputs(network, shape, layout, *outside), 0, true);
        if (!last) continue;
        if (head) around(outputs, head_outputs(network, shape, layout, *outside), 0);
        if (has_head(model, part.module))
            around(loss, head_operators(network, shape, layout, *outside, execution), head_parameters(network));
        projectors();
    }
}

}  // namespace pipeweaver::emulator
