// The encoder whole on the first stage, the generator whole on the last, the backbone cut over all of them.
#include "partition/cut.hpp"
#include "partition/one_chain.hpp"
#include "pipeweaver/workloads/built_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipeweaver::partition {

using namespace emulator;
using namespace workloads;

namespace {

std::int64_t sum_of(const std::vector<std::int64_t>& times) {
    return std::accumulate(times.begin(), times.end(), std::int64_t{0});
}

// Ends of the parts of `weights`, whose first is `front` and whose last is `back` if there are such. Where one of these
// alone is the longest part, the others are cut evenly without it.
std::vector<std::size_t> cut_between(const std::vector<std::int64_t>& weights, std::size_t parts, bool front,
                                     bool back) {
    auto ends = cut_evenly(weights, parts);
    if (parts == 1) return ends;
    if (front && ends.front() == 1) {
        const std::vector<std::int64_t> others(weights.begin() + 1, weights.end());
        std::vector<std::size_t> all{1};
        for (const std::size_t end : cut_between(others, parts - 1, false, back)) all.push_back(end + 1);
        return all;
    }
    if (back && ends[parts - 2] + 1 == weights.size()) {
        const std::vector<std::int64_t> others(weights.begin(), weights.end() - 1);
        auto all = cut_evenly(others, parts - 1);
        all.push_back(weights.size());
        return all;
    }
    return ends;
}

// Layers of the backbone that the encoders' stage must have; never all.
std::size_t kept_in_front(const Model& model) {
    if (model.backbone() == 0) return 0;
    const std::int64_t layers = model.modules[model.backbone()].architecture.layers;
    return static_cast<std::size_t>(std::min(first_layers(model), layers - 1));
}

// Modules from `begin` to `end` (exclusive), each in one piece.
void append_whole(const Model& model, std::size_t begin, std::size_t end, std::vector<LayerRange>& pieces) {
    for (std::size_t m = begin; m < end; ++m) pieces.push_back({m, 0, model.modules[m].architecture.layers});
}

}  // namespace

// A stage for each layer of the backbone, and one each for what lies whole before and after it.
MostStages most_first_stages(const Model& model) {
    const std::size_t backbone = model.backbone();
    if (const auto kept = static_cast<std::int64_t>(kept_in_front(model)); kept > 0) {
        const Module& cut = model.modules[backbone];
        const std::int64_t behind = backbone + 1 < model.modules.size() ? 1 : 0;
        return {1 + cut.architecture.layers - kept + behind,
                fmt::format("the {} layers of {}, of which the first stage needs {}", cut.architecture.layers, cut.name,
                            kept)};
    }
    const std::int64_t whole = (backbone > 0 ? 1 : 0) + (backbone + 1 < model.modules.size() ? 1 : 0);
    const Module& spread = model.modules[backbone];
    return {spread.architecture.layers + whole,
            fmt::format("the {} layers of {} and what lies whole before and after them", spread.architecture.layers,
                        spread.name)};
}

Partition first_stage(const Setup& setup, const Sample& sample, std::int64_t chunks_per_rank) {
    const Model& model = setup.model;
    const std::size_t modules = model.modules.size();
    std::vector<std::vector<std::int64_t>> times;  // per module, per layer
    std::vector<std::int64_t> work;
    for (std::size_t m = 0; m < modules; ++m) {
        times.push_back(times_of(setup, sample, layers_of(model, {m})));
        work.push_back(sum_of(times.back()));
    }
    const auto most = work.begin() + static_cast<std::ptrdiff_t>(model.backbone());
    const auto spread = static_cast<std::size_t>(most - work.begin());
    const auto layers = layers_of(model, {spread});

    // What lies whole on the first stage is one weight, and what lies whole on the last.
    const bool front = spread > 0, back = spread + 1 < modules;
    std::vector<std::int64_t> weights = times[spread];
    const std::size_t kept = kept_in_front(model);
    const auto others = weights.begin() + static_cast<std::ptrdiff_t>(kept);
    const std::int64_t of_kept = std::accumulate(weights.begin(), others, std::int64_t{0});
    weights.erase(weights.begin(), others);
    if (front) weights.insert(weights.begin(), std::accumulate(work.begin(), most, of_kept));
    if (back) weights.push_back(std::accumulate(most + 1, work.end(), std::int64_t{0}));
    const std::size_t stages = stages_of(setup, chunks_per_rank);
    auto ends = cut_between(weights, stages, front, back);

    std::vector<LayerRange> pieces;
    append_whole(model, 0, spread, pieces);
    pieces.insert(pieces.end(), layers.begin(), layers.end());
    append_whole(model, spread + 1, modules, pieces);
    // A weight may stand for several pieces.
    if (front)
        for (std::size_t& end : ends) end += spread - 1 + kept;
    ends.back() = pieces.size();

    Partition partition = one_chain(setup, "first-stage", chunks_per_rank, pieces, ends);
    partition.notes.push_back(fmt::format("{}, {} % of all work: its layers are spread over {} stages",
                                          model.modules[spread].name,
                                          100 * *most / std::max<std::int64_t>(1, sum_of(work)), stages));
    return partition;
}

}  // namespace pipeweaver::partition
