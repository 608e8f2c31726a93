// Costs of passes through layers and stages.
#include "emulator/module_roles.hpp"
#include "pipeweaver/emulator/step.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

LayerCosts::LayerCosts(const workloads::Model& model, const workloads::Cluster& cluster, const Layout& layout,
                       const costdb::CostDatabase& costs)
    : model_(model), layout_(layout), costs_(costs), factors_(in_situ_factors(cluster.device)) {}

const PassCost& LayerCosts::layer(std::size_t module, std::int64_t layer, const PassShape& shape, PassKind pass) {
    const auto& network = model_.modules[module].architecture;
    auto& known = known_[{module, workloads::block_kind(network, layer), pass}];
    // Sequences in another order cost the same.
    std::vector<Sequence> sequences;
    for (std::size_t i = 0; i < shape.lengths.size(); ++i)
        sequences.emplace_back(shape.lengths[i], shape.context.empty() ? 0 : shape.context[i]);
    std::sort(sequences.begin(), sequences.end());
    const auto [place, added] = known.try_emplace(std::move(sequences));
    if (added) place->second = price(layer_operators(network, shape, layout_, pass, layer), costs_, factors_);
    return place->second;
}

PassCost LayerCosts::layers(const LayerRange& range, const PassShape& shape, PassKind pass) {
    const auto& network = model_.modules[range.module].architecture;
    PassCost sum;
    for (std::int64_t i = 0; i < range.count;) {
        const auto kind = workloads::block_kind(network, range.first + i);
        std::int64_t alike = 1;
        while (i + alike < range.count && workloads::block_kind(network, range.first + i + alike) == kind) ++alike;
        sum += alike * layer(range.module, range.first + i, shape, pass);
        i += alike;
    }
    return sum;
}

namespace {

// What a pass does in a module that may be frozen; nothing: nothing at all.
std::optional<PassKind> pass_in(const workloads::Module& module, bool gradient, PassKind pass) {
    if (pass == PassKind::forward) return pass;
    if (!gradient || (pass == PassKind::weight_gradient && !module.trainable)) return std::nullopt;
    if (pass == PassKind::backward && !module.trainable) return PassKind::input_gradient;
    return pass;
}

}  // namespace

PassCost LayerCosts::stage(const StageLayers& stage, const std::vector<PassShape>& shapes, PassKind pass) {
    const auto gradient = gradient_reaches(model_);
    PassCost sum;
    for (const LayerRange& part : stage.parts) {
        const auto& module = model_.modules[part.module];
        const auto& network = module.architecture;
        const PassShape& shape = shapes[part.module];
        const auto here = pass_in(module, gradient[part.module], pass);
        if (shape.lengths.empty() || !here) continue;
        sum += layers(part, shape, *here);
        if (part.first == 0 && network.vocab > 0)
            sum += price(embedding_operators(network, shape, layout_, *here), costs_, factors_);
        if (part.first + part.count < network.layers) continue;
        if (has_head(model_, part.module))
            sum += price(head_operators(network, shape, layout_, *here), costs_, factors_);
        for (const auto& edge : model_.edges)
            if (edge.from == part.module && edge.projector_in > 0)
                sum += price(projector_operators(edge, shape.positions() / edge.token_reduction, layout_, *here),
                             costs_, factors_);
    }
    return sum;
}

PassCost LayerCosts::blocks_forward(const StageLayers& stage, const std::vector<PassShape>& shapes,
                                    Recompute recompute) {
    PassCost sum;
    for (const LayerRange& part : stage.parts)
        if (!shapes[part.module].lengths.empty())
            sum += layers({part.module, part.first, recomputed_layers(part.count, recompute)}, shapes[part.module],
                          PassKind::forward);
    return sum;
}

std::int64_t recomputed_layers(std::int64_t count, Recompute recompute) {
    switch (recompute) {
        case Recompute::none:
            return 0;
        case Recompute::half:
            return (count + 1) / 2;
        case Recompute::full:
            return count;
    }
    return 0;
}

std::string_view name_of(Recompute recompute) {
    switch (recompute) {
        case Recompute::none:
            return "none";
        case Recompute::half:
            return "half";
        case Recompute::full:
            return "full";
    }
    return "";
}

}  // namespace pipeweaver::emulator
