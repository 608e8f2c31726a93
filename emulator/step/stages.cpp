#include "pipeweaver/emulator/stages.hpp"

#include <array>

namespace pipeweaver::emulator {

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
