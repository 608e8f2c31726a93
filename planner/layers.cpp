#include "pipeweaver/planner/layers.hpp"

#include "pipeweaver/partition/partition.hpp"

namespace pipeweaver::planner {

std::vector<emulator::LayerTime> layers_of(const emulator::Setup& setup, const Batch& batch) {
    std::vector<std::vector<emulator::PassShape>> shapes;
    for (const auto& microbatch : batch.microbatches) {
        auto& of = shapes.emplace_back();
        for (const auto& module : setup.model.modules)
            of.push_back(partition::shape_in(module, microbatch, 0, microbatch.items.size()));
    }
    return emulator::layer_times(setup, shapes);
}

}  // namespace pipeweaver::planner
