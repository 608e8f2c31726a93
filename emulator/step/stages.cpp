#include "pipeweaver/emulator/stages.hpp"

#include "pipeweaver/workloads/module_roles.hpp"

#include <array>

namespace pipeweaver::emulator {

bool trains(const workloads::Model& model, const LayerRange& part) {
    const auto& module = model.modules[part.module];
    const bool last = part.first + part.count == module.architecture.layers;
    return module.trainable || (last && workloads::trains_projector(model, part.module));
}

std::int64_t recomputed_layers(std::int64_t count, Recompute recompute) {
    switch (recompute) {
        case Recompute::half:
            return (count + 1) / 2;
        case Recompute::full:
        case Recompute::selective:
            return count;
        default:
            return 0;
    }
}

std::string_view name_of(Recompute recompute) {
    constexpr std::array<std::string_view, 5> names{"none", "half", "full", "selective", "offload"};
    return names[static_cast<std::size_t>(recompute)];
}

}  // namespace pipeweaver::emulator
