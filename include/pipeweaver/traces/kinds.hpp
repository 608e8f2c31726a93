// What takes time in a recorded step, and factors on it.
//
// Kernels      by their names: costdb::class_of_kernel, and collectives by the words of NCCL, RCCL and gloo.
// Factors      are on time: 0.5 is twice as fast, 0 takes none, 1 changes nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

namespace pipeweaver::traces {

enum class Kind : std::uint8_t {
    compute,  ///< what is not told apart: passes and operators of an emulated step, operators on a CPU
    gemm,
    attention,
    convolution,
    memory,   ///< memory-bound kernels
    copy,     ///< between memories, and memory that is set
    unknown,  ///< kernels of which no pattern knows the name
    all_reduce,
    all_gather,
    reduce_scatter,
    all_to_all,
    broadcast,
    send_recv,
    collective,  ///< another one
    launch,      ///< calls that launch, and the time from them to the kernel
    host,        ///< what the host does between its calls, and its other calls
    idle         ///< gaps that nothing in the trace explains
};
constexpr std::size_t kinds = 17;
[[nodiscard]] std::string_view name_of(Kind kind);

[[nodiscard]] bool is_communication(Kind kind);
[[nodiscard]] bool is_work(Kind kind);  ///< of a GPU, or of a CPU in its place; no communication

[[nodiscard]] Kind kind_of_kernel(std::string_view name);
/// Of the name of a collective or of its kernel; other names are those of `collective`.
[[nodiscard]] Kind kind_of_collective(std::string_view name);

struct Factors {
    std::array<double, kinds> of_kind;       ///< by Kind
    std::map<std::int64_t, double> of_rank;  ///< on a rank's work: no communication, no host

    Factors() { of_kind.fill(1); }
};

/// "gemm=0.8,nccl=0.5,rank3=1.2,launch=0": kinds by their names, `nccl` all communication; factors that meet are
/// multiplied. Throws Error{input} for another name or a factor, alone or multiplied, outside 0 to 1000; `ranks` are
/// those that there are.
[[nodiscard]] Factors factors_of(std::string_view text, const std::map<std::int64_t, std::size_t>& ranks);

}  // namespace pipeweaver::traces
