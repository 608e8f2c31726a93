#include "pipeweaver/emulator/memory.hpp"

#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/workloads/built_model.hpp"

#include <fmt/format.h>

#include <cmath>

namespace pipeweaver::emulator {

Bytes usable_bytes(const workloads::Cluster& cluster) {
    const Bytes device = workloads::device(cluster.device).memory;
    return {static_cast<std::int64_t>(std::floor(usable_memory * static_cast<double>(device.count)))};
}

std::string kept_free(Headroom headroom) {
    if (headroom == Headroom{}) return {};
    return fmt::format(" with {:g} % kept free", 100 * headroom.fraction());
}

Setup with_layout(const Setup& setup, const Layout& layout) {
    Setup other{setup.model, setup.cluster, layout, setup.costs, setup.recipe, setup.what_if, setup.headroom};
    workloads::pad_as_built(other.model, layout.tp);
    if (!layout.placement.places(layout)) other.layout.placement = best_placement(other);
    return other;
}

Bytes capacity_of(const Setup& setup) {
    const Bytes usable = usable_bytes(setup.cluster);
    constexpr std::int64_t whole = 1'000'000;
    return {usable.count - (usable.count * setup.headroom.parts_per_million + whole - 1) / whole};
}

std::string MemoryShortage::text() const {
    if (!task.empty()) return task + kept_free(headroom);
    return fmt::format(
        "rank {}: weights, gradients, optimizer state and buffers need {}, {} of a {} is usable{}: {} short",
        index(rank), human(needed()), human(usable), device, kept_free(headroom), human(short_by()));
}

}  // namespace pipeweaver::emulator
