#include "pipeweaver/emulator/stages.hpp"

#include "pipeweaver/workloads/built_model.hpp"
#include "pipeweaver/workloads/module_roles.hpp"

namespace pipeweaver::emulator {

bool trains(const workloads::Model& model, const LayerRange& part) {
    const auto& module = model.modules[part.module];
    const bool last = part.first + part.count == module.architecture.layers;
    return module.trains() || (last && workloads::trains_projector(model, part.module));
}

Recompute recompute_in(const workloads::Model& model, std::size_t module, Recompute recompute) {
    switch (workloads::recompute_of(model, module)) {
        case workloads::EncoderRecompute::never:
            return Recompute::none;
        case workloads::EncoderRecompute::always:
            return Recompute::full;
        default:
            return recompute;
    }
}

std::int64_t recomputed_layers(const workloads::Model& model, const LayerRange& part, Recompute recompute) {
    return recomputed_layers(part.count, recompute_in(model, part.module, recompute), part.module == model.backbone());
}

}  // namespace pipeweaver::emulator
