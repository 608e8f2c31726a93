#include "pipeweaver/emulator/memory.hpp"

#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace pipeweaver::emulator {

Bytes usable_bytes(const workloads::Cluster& cluster) {
    const Bytes device = workloads::device(cluster.device).memory;
    return {static_cast<std::int64_t>(std::floor(usable_memory * static_cast<double>(device.count)))};
}

std::string MemoryShortage::text() const {
    if (!task.empty()) return task;
    return fmt::format(
        "rank {}: weights, gradients, optimizer state and buffers need {}, {} of a {} is usable: {} short; "
        "more pipeline ranks, tensor parallelism or replicas would fit more",
        index(rank), human(needed()), human(usable), device, human(short_by()));
}

}  // namespace pipeweaver::emulator
