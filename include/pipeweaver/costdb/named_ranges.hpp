// Named ranges of a PyTorch (Kineto) trace: when what runs between the two ends of a `record_function` ran.
//
// On a GPU     from the first to the last kernel that was launched inside (gpu_user_annotation); of several streams the
//              one with the longest range counts. A trace with such ranges is read for these alone.
// On a CPU     from the first operator inside (cpu_op on the same thread) to the end, so that a wait in front of the
//              operators, as PyTorch's pipeline runtime has it inside its actions, is left out. Without any operator
//              inside: the range itself.
// Units        whole nanoseconds of the trace's own clock.
// Memory       grows with the ranges, not with the trace, which is read twice.
// Determinism  equal file, equal answer.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::costdb {

struct NamedRange {
    std::string name;
    std::int64_t start_ns = 0, end_ns = 0;

    bool operator==(const NamedRange&) const = default;
};

struct NamedRanges {
    std::optional<std::int64_t> rank;  ///< that wrote the trace, where it says so (distributedInfo)
    bool on_gpu = false;
    std::vector<NamedRange> ranges;  ///< by start
};

/// Reads the ranges whose names begin with `prefix`; gzip allowed. Throws Error{input} for what is no trace or has
/// times that cannot be, Error{io}.
[[nodiscard]] NamedRanges read_named_ranges(const std::filesystem::path& path, std::string_view prefix);

}  // namespace pipeweaver::costdb
