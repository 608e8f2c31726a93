// Partitions of all modules as one chain of stages: cut by parameters (megatron), by time and memory (balanced) or by
// the number of layers (uniform).
#include "partition/one_chain.hpp"

#include "partition/cut.hpp"
#include "partition/rank_memory.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <fmt/format.h>

#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace pipeweaver::partition {

using namespace emulator;
using namespace workloads;

std::vector<LayerRange> layers_of(const Model& model, const std::vector<std::size_t>& modules) {
    std::vector<LayerRange> layers;
    for (const std::size_t m : modules)
        for (std::int64_t i = 0; i < model.modules[m].architecture.layers; ++i) layers.push_back({m, i, 1});
    return layers;
}

std::vector<std::size_t> modules_between(std::size_t begin, std::size_t end) {
    std::vector<std::size_t> modules(end - begin);
    std::iota(modules.begin(), modules.end(), begin);
    return modules;
}

namespace {

// Layers that take equally long: of one module, kind, format and sparsity, with the same before and after them. How
// many of a teacher's layers lie beside one depends on where it stands.
using LikeLayers = std::tuple<std::size_t, BlockKind, bool, bool, bool, std::int64_t, costdb::Dtype, double>;

LikeLayers like(const Setup& setup, const LayerRange& layer) {
    const Model& model = setup.model;
    const Architecture& network = model.modules[layer.module].architecture;
    return {layer.module,
            block_kind(network, layer.first),
            is_moe_layer(network, layer.first),
            layer.first == 0,
            layer.first + 1 == network.layers,
            model.teacher.empty() ? 0 : layer.first,
            setup.recipe.products_of(model.modules[layer.module], layer.first),
            sparsity_of(network, layer.first)};
}

}  // namespace

std::vector<std::int64_t> times_of(const Setup& setup, const Sample& sample, const std::vector<LayerRange>& layers,
                                   const ModuleLayouts& layouts) {
    LayerCosts costs = LayerCosts::usual(setup, layouts);
    std::vector<std::int64_t> times;
    std::map<LikeLayers, std::int64_t> known;
    for (const LayerRange& layer : layers) {
        const auto [time, is_new] = known.try_emplace(like(setup, layer));
        if (is_new) {
            for (const Microbatch& microbatch : sample) {
                std::vector<PassShape> shapes(setup.model.modules.size());
                shapes[layer.module] =
                    shape_in(setup.model.modules[layer.module], microbatch, 0, microbatch.items.size());
                const StageLayers stage{RankId{0}, {layer}};
                for (const PassKind pass : {PassKind::forward, PassKind::backward})
                    time->second += costs.stage(stage, shapes, pass).time.count();
            }
        }
        times.push_back(time->second);
    }
    return times;
}

Partition one_chain(const Setup& setup, std::string name, std::int64_t chunks_per_rank,
                    const std::vector<LayerRange>& layers, const std::vector<std::size_t>& ends) {
    Chain chain;
    std::size_t begin = 0, named = setup.model.modules.size();
    for (const std::size_t end : ends) {
        const auto rank = static_cast<std::uint32_t>(static_cast<std::int64_t>(chain.stages.size()) % setup.layout.pp);
        StageLayers stage{RankId{rank}, {}};
        for (; begin < end; ++begin) {
            const std::size_t module = layers[begin].module;
            if (std::exchange(named, module) != module)
                chain.name += (chain.name.empty() ? "" : "+") + setup.model.modules[module].name;
            if (!stage.parts.empty() && stage.parts.back().module == module)
                stage.parts.back().count += layers[begin].count;
            else
                stage.parts.push_back(layers[begin]);
        }
        chain.stages.push_back(std::move(stage));
    }
    return {std::move(name), chunks_per_rank, {std::move(chain)}, {0}, {}, {}};
}

namespace {

// All modules as one chain of ranks * chunks_per_rank stages, layers weighed by `weight_of`.
template <class WeightOf>
Partition cut_by(const Setup& setup, std::string name, std::int64_t chunks_per_rank, WeightOf weight_of) {
    const auto layers = layers_of(setup.model, modules_between(0, setup.model.modules.size()));
    std::vector<std::int64_t> weights;
    weights.reserve(layers.size());
    for (const LayerRange& layer : layers) weights.push_back(weight_of(layer));
    const std::size_t stages = stages_of(setup, chunks_per_rank);
    return one_chain(setup, std::move(name), chunks_per_rank, layers, cut_evenly(weights, stages));
}

}  // namespace

Partition megatron(const Setup& setup, const Sample&, std::int64_t chunks_per_rank) {
    return cut_by(setup, "megatron", chunks_per_rank, [&](const LayerRange& layer) {
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
    return cut_by(setup, "uniform", chunks_per_rank, [&](const LayerRange& layer) -> std::int64_t {
        if (even) return 1;
        const bool first = layer.module == 0 && layer.first == 0,
                   last_module = layer.module + 1 == setup.model.modules.size();
        const bool last = last_module && layer.first + 1 == setup.model.modules[layer.module].architecture.layers;
        return first || last ? 2 : 1;
    });
}

Partition balanced(const Setup& setup, const Sample& sample, std::int64_t chunks_per_rank) {
    const auto layers = layers_of(setup.model, modules_between(0, setup.model.modules.size()));
    const std::size_t stages = stages_of(setup, chunks_per_rank);
    const auto times = times_of(setup, sample, layers);
    Partition by_time = one_chain(setup, "balanced", chunks_per_rank, layers, cut_evenly(times, stages));
    const RankMemory memory(setup, sample, chunks_per_rank);
    const auto shortage = memory.shortage(by_time.chains.front());
    if (!shortage) return by_time;
    auto fitting = cut_to_fit(memory, layers, times, stages, [&](const std::vector<std::size_t>& ends) {
        return one_chain(setup, "balanced", chunks_per_rank, layers, ends);
    });
    const auto short_of =
        fmt::format("cut by time alone, rank {} is {} short", index(shortage->rank), human(shortage->short_by));
    if (!fitting) {
        by_time.notes.push_back(short_of + "; no cut was found that fits");
        return by_time;
    }
    fitting->notes.push_back(short_of + ": cut by time and memory");
    return std::move(*fitting);
}

}  // namespace pipeweaver::partition
