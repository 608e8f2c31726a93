// Costs of passes through layers and stages.
#include "emulator/stage_walk.hpp"
#include "pipeweaver/emulator/step.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

LayerCosts::LayerCosts(const workloads::Model& model, const workloads::Cluster& cluster, const Layout& layout,
                       const costdb::CostDatabase& costs)
    : model_(model), layout_(layout), costs_(costs), factors_(in_situ_factors(costs, cluster.device)) {}

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
    PassCost sum;
    walk_layers(model_, range, [&](std::int64_t first, std::int64_t alike) {
        sum += alike * layer(range.module, first, shape, pass);
    });
    return sum;
}

PassCost LayerCosts::stage(const StageLayers& stage, const std::vector<PassShape>& shapes, PassKind pass) {
    PassCost sum;
    walk_stage(
        model_, layout_, stage, shapes, pass,
        [&](const LayerRange& part, PassKind here) { sum += layers(part, shapes[part.module], here); },
        [&](const std::vector<Operator>& operators) { sum += price(operators, costs_, factors_); });
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
