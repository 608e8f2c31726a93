// What the kernels of a PyTorch (Kineto) trace say about operator costs.
//
// Linking      a kernel belongs to the operator (cpu_op) with its `External id`; not where that id is only the kernel's
//              own `correlation`, as some profilers write it. An operator's time is the sum of its kernels' durations.
// Mapped       aten::mm, addmm, _scaled_mm -> GEMM forward (m,n,k), whatever pass it was of; flash, memory-efficient
//              and cuDNN attention, forward and backward, equal lengths -> attention; NCCL kernels by their own
//              arguments or those of record_param_comms -> collective. Shapes need record_shapes=True.
// Listed       everything else, with the reason: batched GEMMs, convolutions, memory-bound kernels (the trace does not
//              say their traffic), copies, unknown kernels.
// Repetitions  of one shape: the lower of the two middle times, of more than 1023 evenly spaced ones; collectives: the
//              shortest time, since a kernel that waits for other ranks runs as long as it waits. The spread is half of
//              the range that nine of ten lie in.
// Memory       does not grow with the number of events: up to 524 288 launching operators are held at a time (24 bytes
//              each); a trace with more is read once more for each further 524 288. It grows with distinct kernel names
//              (at most 65 536) and distinct operator shapes (at most 131 072). The file is read at least twice.
// Time stamps  whole nanoseconds from the decimal digits of `ts` and `dur`, never through a double.
// Determinism  equal file and options, equal report.
#pragma once

#include "pipeweaver/costdb/measurements.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::costdb {

enum class OperatorClass : std::uint8_t { gemm, attention, collective, convolution, memory_bound, copy, unknown };
[[nodiscard]] std::string_view name_of(OperatorClass which);

/// The class of a kernel by its name.
[[nodiscard]] OperatorClass class_of_kernel(std::string_view name);

struct TraceOptions {
    std::int64_t gpus_per_node = 8;  ///< ranks r and s are in one node if r / gpus_per_node = s / gpus_per_node
    std::filesystem::path kernels;   ///< if given, a CSV of all kernels and copies is written there
    /// For tables of this device, or of the one that the trace names where it is empty: another is refused before the
    /// kernels are written.
    std::optional<std::string> device{};
};

/// Kernels of one name that share a fate.
struct KernelRow {
    std::string name;
    OperatorClass which = OperatorClass::unknown;
    bool is_copy = false;  ///< memcpy or memset, which a trace does not count as kernels
    std::string why_not;   ///< why they are in no table; empty: they are
    std::int64_t count = 0, total_ns = 0;

    bool operator==(const KernelRow&) const = default;
};

struct TraceReport {
    std::string product;          ///< the device, as the trace names it
    std::vector<KernelRow> rows;  ///< longest first; their counts and times add up to the totals
    std::int64_t events = 0;
    std::int64_t kernels = 0, kernels_ns = 0, copies = 0, copies_ns = 0;
    std::int64_t mapped = 0, mapped_ns = 0;  ///< kernels and copies that a point rests on
    std::int64_t readings = 0;               ///< of the file
    Measurements points;                     ///< without a device
    std::string sha256;
};

/// Reads a trace, gzip allowed. `kernels` gets device,stream,start_ns,duration_ns,operator,name in the order of start
/// on each stream, equal starts in the order of the file. Throws Error{input} for what is no trace or has times that
/// cannot be, Error{io}, Error{limit} for more distinct kernels or shapes than above.
[[nodiscard]] TraceReport read_trace(const std::filesystem::path& path, const TraceOptions& options = {});

}  // namespace pipeweaver::costdb
