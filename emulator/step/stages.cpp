#include "pipeweaver/emulator/stages.hpp"

#include "pipeweaver/workloads/module_roles.hpp"

namespace pipeweaver::emulator {

bool trains(const workloads::Model& model, const LayerRange& part) {
    const auto& module = model.modules[part.module];
    const bool last = part.first + part.count == module.architecture.layers;
    return module.trains() || (last && workloads::trains_projector(model, part.module));
}

std::int64_t recomputed_layers(const workloads::Model& model, const LayerRange& part, Recompute recompute) {
    return recomputed_layers(part.count, recompute, part.module == model.backbone());
}

}  // namespace pipeweaver::emulator
