// Encoders data parallel over all GPUs, the rest of the model a pipeline between their forwards and their backwards.
#include "partition/cut.hpp"
#include "partition/one_chain.hpp"
#include "pipeweaver/partition/partitioners.hpp"

#include <fmt/format.h>

namespace pipeweaver::partition {

using namespace emulator;
using namespace workloads;

std::optional<std::string> why_not_dealt(const Setup& setup) {
    const Model& model = setup.model;
    const std::size_t backbone = model.backbone();
    if (backbone == 0)
        return fmt::format("model {} has no encoder before {}", model.name, model.modules[backbone].name);
    for (std::size_t m = backbone + 1; m < model.modules.size(); ++m)
        if (model.modules[m].architecture.kind != ModuleKind::head)
            return fmt::format("goes with encoders alone, {} comes after {}", model.modules[m].name,
                               model.modules[backbone].name);
    for (std::size_t m = 0; m < backbone; ++m)
        if (model.modules[m].architecture.moe || model.modules[m].architecture.linear)
            return fmt::format("goes with encoders without experts and linear attention, {} has them",
                               model.modules[m].name);
    for (const ModelEdge& edge : model.edges)
        if (edge.to < backbone)
            return fmt::format("goes with encoders that feed {} alone, {} feeds {}", model.modules[backbone].name,
                               model.modules[edge.from].name, model.modules[edge.to].name);
    if (setup.recipe.zero >= 2)
        return fmt::format("is emulated with --zero 0 or 1, {} was asked for", setup.recipe.zero);
    return std::nullopt;
}

// A stage for each layer from the backbone on.
MostStages most_phase_stages(const Model& model) {
    std::int64_t layers = 0;
    for (std::size_t m = model.backbone(); m < model.modules.size(); ++m)
        layers += model.modules[m].architecture.layers;
    return {layers, fmt::format("the pipeline's {} layers", layers)};
}

Partition three_phase(const Setup& setup, const Sample& sample, std::int64_t chunks_per_rank) {
    const Model& model = setup.model;
    const std::size_t backbone = model.backbone();
    const auto layers = layers_of(model, modules_between(backbone, model.modules.size()));
    const std::size_t stages = stages_of(setup, chunks_per_rank);
    Partition partition =
        one_chain(setup, "three-phase", chunks_per_rank, layers, cut_evenly(times_of(setup, sample, layers), stages));
    for (std::size_t m = 0; m < model.modules.size(); ++m) partition.layouts.push_back(layout_of({}, m, setup.layout));
    for (std::size_t m = 0; m < backbone; ++m) {
        partition.layouts[m] = in_phases(setup.layout);
        partition.notes.push_back(fmt::format("{}: whole on each of the replica's {} GPUs, items dealt by cost",
                                              model.modules[m].name, setup.layout.gpus() / setup.layout.dp));
    }
    return partition;
}

}  // namespace pipeweaver::partition
