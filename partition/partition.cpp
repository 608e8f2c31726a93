#include "pipeweaver/partition/partition.hpp"

#include "partition/cut.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <algorithm>

namespace pipeweaver::partition {

using namespace emulator;
using namespace workloads;

namespace {

constexpr double wanted_efficiency = 0.95;

// Forward and backward of all blocks of a module.
Duration module_time(LayerCosts& costs, const Model& model, std::size_t m, const PassShape& shape) {
    const LayerRange all{m, 0, model.modules[m].architecture.layers};
    return costs.layers(all, shape, PassKind::forward).time + costs.layers(all, shape, PassKind::backward).time;
}

PassShape first_items(const PassShape& shape, std::size_t count) {
    const auto first = [count](const std::vector<std::int64_t>& lengths) {
        const auto end = lengths.begin() + static_cast<std::ptrdiff_t>(std::min(count, lengths.size()));
        return std::vector<std::int64_t>(lengths.begin(), end);
    };
    return {first(shape.lengths), first(shape.context)};
}

// Items of the module in the microbatch that has most of them: what sub-microbatch sizes are tried on.
PassShape largest_shape(const Workload& workload, std::size_t m) {
    PassShape largest;
    for (const Microbatch& microbatch : *workload.microbatches) {
        const auto shape = shape_in(workload.model->modules[m], microbatch, 0, microbatch.items.size());
        if (shape.lengths.size() > largest.lengths.size()) largest = shape;
    }
    return largest;
}

// Smallest number of items with which the module runs at 95 % of the best positions per second.
std::int64_t smallest_efficient(LayerCosts& costs, const Model& model, std::size_t m, const PassShape& all) {
    std::vector<double> speed;
    for (std::size_t n = 1; n <= all.lengths.size(); ++n) {
        const PassShape shape = first_items(all, n);
        speed.push_back(static_cast<double>(shape.positions()) /
                        static_cast<double>(module_time(costs, model, m, shape).count()));
    }
    const double best = *std::max_element(speed.begin(), speed.end());
    const auto found =
        std::find_if(speed.begin(), speed.end(), [&](double s) { return s >= wanted_efficiency * best; });
    return found - speed.begin() + 1;
}

// What one pass of the module takes on average over the sample.
Duration mean_pass_time(LayerCosts& costs, const Workload& workload, std::size_t m) {
    Duration sum{};
    for (const Microbatch& microbatch : *workload.microbatches)
        sum += module_time(costs, *workload.model, m,
                           shape_in(workload.model->modules[m], microbatch, 0, microbatch.items.size()));
    return sum / static_cast<std::int64_t>(workload.microbatches->size());
}

// `segments` passes over all ranks; layers as equal as they can be, the remainder to the earlier chunks.
Chain chain_of(const Model& model, std::size_t m, std::int64_t ranks, std::int64_t segments) {
    Chain chain{model.modules[m].name, {}};
    const std::int64_t layers = model.modules[m].architecture.layers, chunks = ranks * segments;
    std::int64_t first = 0;
    for (std::int64_t c = 0; c < chunks; ++c) {
        const std::int64_t count = layers / chunks + (c < layers % chunks ? 1 : 0);
        chain.stages.push_back({RankId{static_cast<std::uint32_t>(c % ranks)}, {{m, first, count}}});
        first += count;
    }
    return chain;
}

}  // namespace

Partition dip(const Workload& workload) {
    const Model& model = *workload.model;
    LayerCosts costs(model, *workload.cluster, workload.layout, *workload.costs);
    Partition partition{"dip", 0, {}, {}, {}};
    std::vector<Duration> time;
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        std::int64_t items = 0;
        if (model.modules[m].unit == PassUnit::items) {
            const PassShape all = largest_shape(workload, m);
            // Without any item in the sample there is nothing to measure; any size does.
            items = all.lengths.empty() ? 1 : smallest_efficient(costs, model, m, all);
            const PassShape unit = first_items(all, static_cast<std::size_t>(items));
            time.push_back(all.lengths.empty() ? Duration{0} : module_time(costs, model, m, unit));
            partition.notes.push_back(
                fmt::format("{}: {} items a sub-microbatch run at {:.0f} % of the best efficiency or more",
                            model.modules[m].name, items, 100 * wanted_efficiency));
        } else {
            time.push_back(mean_pass_time(costs, workload, m));
        }
        partition.unit_items.push_back(items);
    }
    Duration shortest = Duration::max();
    for (const Duration t : time)
        if (t > Duration{0}) shortest = std::min(shortest, t);
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        const std::int64_t most = model.modules[m].architecture.layers / workload.layout.pp;
        const std::int64_t segments = std::clamp<std::int64_t>(time[m] / shortest, 1, most);
        partition.chunks_per_rank += segments;
        partition.chains.push_back(chain_of(model, m, workload.layout.pp, segments));
        partition.notes.push_back(fmt::format("{}: a pass takes {}, {} segment{} of {} layers over {} ranks",
                                              model.modules[m].name, human(time[m]), segments, segments == 1 ? "" : "s",
                                              model.modules[m].architecture.layers, workload.layout.pp));
    }
    return partition;
}

namespace {

// All modules as one chain of ranks * chunks_per_rank stages, layers weighed by `weight_of`.
template <class WeightOf>
Partition one_chain(const Workload& workload, std::string name, std::int64_t chunks_per_rank, WeightOf weight_of) {
    const Model& model = *workload.model;
    std::vector<std::int64_t> weights;
    std::vector<LayerRange> layers;
    for (std::size_t m = 0; m < model.modules.size(); ++m)
        for (std::int64_t i = 0; i < model.modules[m].architecture.layers; ++i) {
            layers.push_back({m, i, 1});
            weights.push_back(weight_of(layers.back()));
        }
    const std::int64_t stages = workload.layout.pp * chunks_per_rank;
    if (stages > static_cast<std::int64_t>(layers.size()))
        fail(ErrorKind::input, "{} stages are more than the model's {} layers", stages, layers.size());
    Chain chain;
    for (const Module& module : model.modules) chain.name += (chain.name.empty() ? "" : "+") + module.name;
    std::size_t begin = 0;
    for (const std::size_t end : cut_evenly(weights, static_cast<std::size_t>(stages))) {
        const auto rank =
            static_cast<std::uint32_t>(static_cast<std::int64_t>(chain.stages.size()) % workload.layout.pp);
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

Partition megatron(const Workload& workload, std::int64_t chunks_per_rank) {
    return one_chain(workload, "megatron", chunks_per_rank, [&](const LayerRange& layer) {
        const Architecture& network = workload.model->modules[layer.module].architecture;
        // Of experts those that a position passes: layers with them are about as long as those without.
        std::int64_t weight =
            network.moe ? active_layer_parameters(network, layer.first) : layer_parameters(network, layer.first);
        if (layer.first == 0) weight += embedding_parameters(network);
        if (layer.first + 1 == network.layers) weight += head_parameters(network);
        return weight;
    });
}

Partition balanced(const Workload& workload, std::int64_t chunks_per_rank) {
    LayerCosts costs(*workload.model, *workload.cluster, workload.layout, *workload.costs);
    return one_chain(workload, "balanced", chunks_per_rank, [&](const LayerRange& layer) {
        Duration sum{};
        for (const Microbatch& microbatch : *workload.microbatches) {
            std::vector<PassShape> shapes(workload.model->modules.size());
            shapes[layer.module] =
                shape_in(workload.model->modules[layer.module], microbatch, 0, microbatch.items.size());
            const StageLayers stage{RankId{0}, {layer}};
            sum += costs.stage(stage, shapes, PassKind::forward).time +
                   costs.stage(stage, shapes, PassKind::backward).time;
        }
        return static_cast<std::int64_t>(sum.count());
    });
}

Partition in_one_chain(const Partition& partition) {
    Partition one{partition.name, 0, {Chain{}}, {0}, partition.notes};
    Chain& row = one.chains.front();
    for (const Chain& chain : partition.chains) {
        row.name += (row.name.empty() ? "" : "+") + chain.name;
        row.stages.insert(row.stages.end(), chain.stages.begin(), chain.stages.end());
    }
    std::vector<std::int64_t> chunks;
    for (const StageLayers& stage : row.stages) {
        chunks.resize(std::max(chunks.size(), index(stage.rank) + 1));
        one.chunks_per_rank = std::max(one.chunks_per_rank, ++chunks[index(stage.rank)]);
    }
    return one;
}

}  // namespace pipeweaver::partition
