#include "pipeweaver/rl/encoders.hpp"

#include "pipeweaver/workloads/counts.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace pipeweaver::rl {

namespace {

using workloads::Item;
using workloads::Model;
using workloads::Module;

// Of each sequence that the module reads: an item, or a part of a clip.
std::vector<std::int64_t> sequences(const Module& module, const workloads::Sample& prompt) {
    std::vector<std::int64_t> lengths;
    for (const Item& item : prompt.items) {
        const bool taken =
            std::find(module.modalities.begin(), module.modalities.end(), item.modality) != module.modalities.end();
        for (std::int64_t span = 0; taken && !item.target && span < item.spans; ++span)
            lengths.push_back((item.patches + span) / item.spans);
    }
    return lengths;
}

double network_flops(const workloads::Architecture& network, const std::vector<std::int64_t>& lengths) {
    double positions = 0, flops = 0;
    for (const std::int64_t length : lengths) positions += static_cast<double>(length);
    for (std::int64_t layer = 0; layer < network.layers; ++layer)
        flops += workloads::layer_flops(network, layer, positions, workloads::attention_pairs(network, layer, lengths));
    return flops + workloads::head_flops(network, positions);
}

}  // namespace

Encoders encoders_of(const Model& model, const workloads::Sample& prompt) {
    constexpr std::int64_t bf16 = 2;
    Encoders all;
    // Whether the backward reaches a module: its own weights, or those of a module in front of it, are trained.
    const std::vector<bool> reached = workloads::gradient_reaches(model);
    for (std::size_t m = 0; m < model.backbone(); ++m) {
        const Module& module = model.modules[m];
        if (module.unit != workloads::PassUnit::items) continue;
        const auto lengths = sequences(module, prompt);
        double positions = 0;
        for (const std::int64_t length : lengths) positions += static_cast<double>(length);
        const auto add = [&](double forward, Bytes weights, bool trained, bool passed) {
            all.forward_flops += forward;
            all.training_flops += forward * (1 + (passed ? 1 : 0) + (trained ? 1 : 0));
            all.weights = all.weights + weights;
            if (trained) all.trained = all.trained + weights;
        };
        add(network_flops(module.architecture, lengths), bf16 * Bytes{workloads::all_parameters(module.architecture)},
            module.trains(), reached[m]);
        for (const auto& edge : model.edges) {
            if (edge.from != m || edge.projector_in == 0) continue;
            const std::int64_t parameters = workloads::projector_parameters(edge);
            const double tokens = positions / static_cast<double>(std::max<std::int64_t>(1, edge.token_reduction));
            const bool trained = workloads::trains_projector(model, edge);
            add(2 * tokens * static_cast<double>(parameters), bf16 * Bytes{parameters}, trained, reached[m]);
        }
    }
    return all;
}

}  // namespace pipeweaver::rl
