#include "pipeweaver/emulator/layer_times.hpp"

#include "emulator/pricing/stage_memory.hpp"
#include "emulator/pricing/stage_walk.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

namespace pipeweaver::emulator {

namespace {

Duration waits_for_traffic(const PassCost& cost) {
    Duration sum{};
    for (const Stream stream : {Stream::tensor, Stream::context, Stream::data})
        sum += cost.exposed[static_cast<std::size_t>(stream)];
    return sum;
}

void add_layer(LayerCosts& costs, const Setup& setup, std::size_t m, const PassShape& shape, bool gradient,
               LayerTime& sum) {
    const auto& module = setup.model.modules[m];
    const LayerRange range{m, sum.layer, 1};
    const PassCost forward = costs.layers(range, shape, PassKind::forward);
    sum.forward += forward.time;
    sum.exposed_traffic += waits_for_traffic(forward);
    const auto pass = pass_in(module, gradient, PassKind::backward);
    if (!pass) return;
    const PassCost backward = costs.layers(range, shape, *pass);
    sum.backward += backward.time;
    sum.exposed_traffic += waits_for_traffic(backward);
    sum.kept +=
        block_activations(module.architecture, sum.layer, shape, with_lies(setup.layout, module.lies), setup.recipe);
}

}  // namespace

std::vector<LayerTime> layer_times(const Setup& setup, const std::vector<std::vector<PassShape>>& shapes) {
    LayerCosts costs(setup);
    const auto gradient = gradient_reaches(setup.model);
    const auto count = static_cast<std::int64_t>(shapes.size());
    std::vector<LayerTime> all;
    for (std::size_t m = 0; m < setup.model.modules.size(); ++m)
        for (std::int64_t i = 0; i < setup.model.modules[m].architecture.layers; ++i) {
            LayerTime layer{setup.model.modules[m].name, i, {}, {}, {}, {}};
            for (const auto& microbatch : shapes)
                if (!microbatch[m].lengths.empty()) add_layer(costs, setup, m, microbatch[m], gradient[m], layer);
            layer.forward /= count;
            layer.backward /= count;
            layer.exposed_traffic /= count;
            layer.kept.count /= count;
            all.push_back(std::move(layer));
        }
    return all;
}

}  // namespace pipeweaver::emulator
