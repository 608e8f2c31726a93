// What a GPU's memory is taken by besides what a step allocates, as far as measured runs say. Plans and emulations
// count what is allocated alone: usable_memory and Headroom keep the rest free.
//
// Source       peaks of 16-bit runs by what their frameworks print: docs/accuracy.md, "Memory".
#pragma once

#include "pipeweaver/emulator/emulation.hpp"
#include "pipeweaver/emulator/memory.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace pipeweaver::emulator {

/// What PyTorch's allocator reserves at a rank's peak where shapes are constant: 5 % more than is allocated, and half
/// of each microbatch in flight beyond the first, whose blocks come free between those of others.
[[nodiscard]] Bytes reserved(const RankMemory& memory);

/// What nvidia-smi shows of it: what is reserved, the CUDA context, and with several GPUs NCCL's buffers.
[[nodiscard]] Bytes on_device(const RankMemory& memory, std::int64_t gpus);

/// What is measured as a GPU's peak: what tensors were allocated; what PyTorch's allocator reserved for them; what
/// nvidia-smi shows, with the CUDA context and NCCL's buffers.
enum class MemoryKind : std::uint8_t { allocated, reserved, on_device };
[[nodiscard]] std::string_view name_of(MemoryKind kind);

/// The rank's peak as it is measured: what is allocated, with what its kind adds. `gpus`: of the run.
[[nodiscard]] Bytes peak_of(const RankMemory& memory, MemoryKind kind, std::int64_t gpus);

/// The part of a GPU's memory that an allocator may take above what it gives out where shapes vary, until its segments
/// can expand: of 80 GB 58.8 could be allocated (docs/memory.md, "What is not counted").
inline constexpr double varying_shapes_part = 0.26;

/// Whether a GPU that allocates `peak` of its memory has less than that part left.
[[nodiscard]] bool leaves_little_room(Bytes peak, Bytes memory);

/// What is kept free so that as much is left: the least whole percentage of the usable memory.
[[nodiscard]] Headroom headroom_of_varying_shapes();

/// One line, to follow a table of memory.
[[nodiscard]] std::string not_counted();

}  // namespace pipeweaver::emulator
