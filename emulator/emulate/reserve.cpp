#include "pipeweaver/emulator/reserve.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::emulator {

namespace {

// Fitted: the first to peaks without a pipeline, the second to pipelines of nanotron.
constexpr double of_all = 0.05, of_a_pass = 0.5;

// Of GPT-2s on one node: what is left beside states and activations, on one GPU and on several.
constexpr Bytes context = 600_MiB, channels = 3_GiB;

}  // namespace

Bytes reserved(const RankMemory& memory) {
    const auto held = static_cast<double>(memory.activations.count);
    const auto passes = static_cast<double>(std::max<std::int64_t>(memory.in_flight, 1));
    const double between = of_a_pass * held * (passes - 1) / passes;
    return Bytes{std::llround((1 + of_all) * (static_cast<double>(memory.peak.count) + between))};
}

Bytes on_device(const RankMemory& memory, std::int64_t gpus) {
    return reserved(memory) + context + (gpus > 1 ? channels : Bytes{});
}

std::string_view name_of(MemoryKind kind) {
    constexpr std::array<std::string_view, 3> names{"allocated", "reserved", "on device"};
    return names.at(static_cast<std::size_t>(kind));
}

Bytes peak_of(const RankMemory& memory, MemoryKind kind, std::int64_t gpus) {
    if (kind == MemoryKind::reserved) return reserved(memory);
    return kind == MemoryKind::on_device ? on_device(memory, gpus) : memory.peak;
}

bool leaves_little_room(Bytes peak, Bytes memory) {
    return static_cast<double>((memory - peak).count) < varying_shapes_part * static_cast<double>(memory.count);
}

Headroom headroom_of_varying_shapes() {
    const double kept = 1 - (1 - varying_shapes_part) / usable_memory;
    constexpr std::int64_t percent = 10'000;  // parts per million
    return {percent * static_cast<std::int64_t>(std::ceil(100 * kept))};
}

std::string not_counted() {
    return "not counted: what an allocator reserves above this (of constant shapes 5 %, and half of each "
           "microbatch "
           "in flight but one; of varying shapes more: 80 GB were full with 58.8 GB allocated, until segments could "
           "expand), the CUDA context, NCCL's buffers, tensors of your own";
}

}  // namespace pipeweaver::emulator
