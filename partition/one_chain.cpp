// Partitions of all modules as one chain of stages: cut by parameters (megatron), by time (balanced) or by the number of
// layers (uniform).
#include "partition/cut.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/workloads/counts.hpp"

namespace pipeweaver::partition {

using namespace emulator;
using namespace workloads;

namespace {

// All modules as one chain of ranks * chunks_per_rank stages, layers weighed by `weight_of`.
template <class WeightOf>
Partition one_chain(const Setup& setup, std::string name, std::int64_t chunks_per_rank, WeightOf weight_of) {
    const Model& model = setup.model;
    std::vector<std::int64_t> weights;
    std::vector<LayerRange> layers;
    for (std::size_t m = 0; m < model.modules.size(); ++m)
        for (std::int64_t i = 0; i < model.modules[m].architecture.layers; ++i) {
            layers.push_back({m, i, 1});
            weights.push_back(weight_of(layers.back()));
        }
    const std::int64_t stages = setup.layout.pp * chunks_per_rank;
    if (stages > static_cast<std::int64_t>(layers.size()))
        fail(ErrorKind::input, "{} stages are more than the model's {} layers", stages, layers.size());
    Chain chain;
    for (const Module& module : model.modules) chain.name += (chain.name.empty() ? "" : "+") + module.name;
    std::size_t begin = 0;
    for (const std::size_t end : cut_evenly(weights, static_cast<std::size_t>(stages))) {
        const auto rank = static_cast<std::uint32_t>(static_cast<std::int64_t>(chain.stages.size()) % setup.layout.pp);
        StageLayers stage{RankId{rank}, {}};
        for (; begin < end; ++begin) {
            if (!stage.parts.empty() && stage.parts.back().module == layers[begin].module)
                ++stage.parts.back().count;
            else
                stage.parts.push_back(layers[begin]);
        }
        chain.stages.push_back(std::move(stage));
    }
    return {std::move(name), chunks_per_rank, {std::move(chain)}, {0}, {}};
}

}  // namespace

Partition megatron(const Setup& setup, const Sample&, std::int64_t chunks_per_rank) {
    return one_chain(setup, "megatron", chunks_per_rank, [&](const LayerRange& layer) {
        const Architecture& network = setup.model.modules[layer.module].architecture;
        // Of experts those that a position passes: layers with them are about as long as those without.
        std::int64_t weight =
            network.moe ? active_layer_parameters(network, layer.first) : layer_parameters(network, layer.first);
        if (layer.first == 0) weight += embedding_parameters(network);
        if (layer.first + 1 == network.layers) weight += head_parameters(network);
        return weight;
    });
}

Partition uniform(const Setup& setup, const Sample&, std::int64_t chunks_per_rank) {
    std::int64_t layers = 0;
    for (const Module& module : setup.model.modules) layers += module.architecture.layers;
    const bool even = layers % (setup.layout.pp * chunks_per_rank) == 0;
    return one_chain(setup, "uniform", chunks_per_rank, [&](const LayerRange& layer) -> std::int64_t {
        if (even) return 1;
        const bool first = layer.module == 0 && layer.first == 0,
                   last_module = layer.module + 1 == setup.model.modules.size();
        const bool last = last_module && layer.first + 1 == setup.model.modules[layer.module].architecture.layers;
        return first || last ? 2 : 1;
    });
}

Partition balanced(const Setup& setup, const Sample& sample, std::int64_t chunks_per_rank) {
    LayerCosts costs = LayerCosts::usual(setup);
    return one_chain(setup, "balanced", chunks_per_rank, [&](const LayerRange& layer) {
        Duration sum{};
        for (const Microbatch& microbatch : sample) {
            std::vector<PassShape> shapes(setup.model.modules.size());
            shapes[layer.module] = shape_in(setup.model.modules[layer.module], microbatch, 0, microbatch.items.size());
            const StageLayers stage{RankId{0}, {layer}};
            sum += costs.stage(stage, shapes, PassKind::forward).time +
                   costs.stage(stage, shapes, PassKind::backward).time;
        }
        return static_cast<std::int64_t>(sum.count());
    });
}

}  // namespace pipeweaver::partition
