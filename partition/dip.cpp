// The modality-aware partition of DIP: each module a chain of its own.
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/partition/partitioners.hpp"

#include <fmt/format.h>

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
PassShape largest_shape(const Setup& setup, const Sample& sample, std::size_t m) {
    PassShape largest;
    for (const Microbatch& microbatch : sample) {
        const auto shape = shape_in(setup.model.modules[m], microbatch, 0, microbatch.items.size());
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
Duration mean_pass_time(LayerCosts& costs, const Setup& setup, const Sample& sample, std::size_t m) {
    Duration sum{};
    for (const Microbatch& microbatch : sample)
        sum += module_time(costs, setup.model, m,
                           shape_in(setup.model.modules[m], microbatch, 0, microbatch.items.size()));
    return sum / static_cast<std::int64_t>(sample.size());
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

Partition dip(const Setup& setup, const Sample& sample, std::int64_t) {
    const Model& model = setup.model;
    LayerCosts costs = LayerCosts::usual(setup);
    Partition partition{"dip", 0, {}, {}, {}, {}};
    std::vector<Duration> time;
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        std::int64_t items = 0;
        if (model.modules[m].unit == PassUnit::items) {
            const PassShape all = largest_shape(setup, sample, m);
            // Without any item in the sample there is nothing to measure; any size does.
            items = all.lengths.empty() ? 1 : smallest_efficient(costs, model, m, all);
            const PassShape unit = first_items(all, static_cast<std::size_t>(items));
            time.push_back(all.lengths.empty() ? Duration{0} : module_time(costs, model, m, unit));
            partition.notes.push_back(
                fmt::format("{}: {} items a sub-microbatch run at {:.0f} % of the best efficiency or more",
                            model.modules[m].name, items, 100 * wanted_efficiency));
        } else {
            time.push_back(mean_pass_time(costs, setup, sample, m));
        }
        partition.unit_items.push_back(items);
    }
    Duration shortest = Duration::max();
    for (const Duration t : time)
        if (t > Duration{0}) shortest = std::min(shortest, t);
    for (std::size_t m = 0; m < model.modules.size(); ++m) {
        const std::int64_t most = model.modules[m].architecture.layers / setup.layout.pp;
        const std::int64_t segments = std::clamp<std::int64_t>(time[m] / shortest, 1, most);
        partition.chunks_per_rank += segments;
        partition.chains.push_back(chain_of(model, m, setup.layout.pp, segments));
        partition.notes.push_back(fmt::format("{}: a pass takes {}, {} segment{} of {} layers over {} ranks",
                                              model.modules[m].name, human(time[m]), segments, segments == 1 ? "" : "s",
                                              model.modules[m].architecture.layers, setup.layout.pp));
    }
    return partition;
}

}  // namespace pipeweaver::partition
