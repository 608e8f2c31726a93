// What traces hold of a step: work on streams, the host's calls, what they wait for. Times are by a rank's own clock.
//
// Kineto       kernels, copies and memory that is set, of each stream; calls of the runtime and the driver by thread;
//              cuda_sync events where they were recorded. Of a rank without GPU work the outermost operators and
//              annotations of each thread, and gloo's collectives; a pass of a pipeline ("PP:0F3") begins with the
//              first operator inside it, behind a wait in front of it.
// Own traces   of an emulated step (emulate --out) or a schedule (plan): each process is a rank, each thread a stream.
// Memory       grows with work and calls, not with the other events. A file without GPU work is read twice.
#pragma once

#include "pipeweaver/traces/kinds.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::traces {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t longest_step_ns = 100 * std::int64_t{3'600'000'000'000};

struct Collective {
    std::string group;                ///< name and ranks of its process group; empty: the trace does not say
    std::vector<std::int64_t> ranks;  ///< of the group; empty: the trace does not say, or not all
    std::optional<std::int64_t> sequence{};
    std::string message;                   ///< elements and type
    std::optional<std::int64_t> source{};  ///< of what is received
    std::optional<std::int64_t> target{};  ///< of what is sent
};

/// A kernel, a copy, or what else occupies a stream or thread.
struct Work {
    std::int64_t start_ns = 0, duration_ns = 0;
    std::uint32_t thread = 0;  ///< stream or thread, of its rank
    std::uint32_t name = 0;    ///< in Recording::names
    Kind kind = Kind::unknown;
    std::int64_t correlation = -1;  ///< of the call that launched it; -1: none is told
    std::uint32_t collective = none;

    std::int64_t end_ns() const { return start_ns + duration_ns; }
};

enum class CallKind : std::uint8_t { other, stream_sync, event_sync, device_sync, wait_event };

struct Call {
    std::int64_t start_ns = 0, duration_ns = 0;
    std::uint32_t thread = 0;
    CallKind kind = CallKind::other;
    std::int64_t correlation = -1;

    std::int64_t end_ns() const { return start_ns + duration_ns; }
};

/// What a synchronising call waits for, as a cuda_sync event says.
struct Sync {
    std::uint32_t stream = none;    ///< that waits, or is waited for by the host
    std::uint32_t awaited = none;   ///< on which the event was recorded
    std::int64_t recorded_by = -1;  ///< the call's correlation
};

struct RankRecord {
    std::string file;
    std::int64_t rank = 0;
    std::vector<Work> works;             ///< by thread, then start, then place in the file
    std::vector<Call> calls;             ///< by start, then place in the file
    std::map<std::int64_t, Sync> syncs;  ///< by the call's correlation
    std::vector<Collective> collectives;
    std::size_t threads = 0;  ///< numbers below are streams and threads
};

/// From the first start to the last end of its works and calls; 0 if it has none.
[[nodiscard]] std::int64_t span_of(const RankRecord& record);

/// One end of an arrow between two events, or a point on its way; it lies in the event of that thread at that time.
struct Arrow {
    std::string id;
    std::size_t rank = 0;  ///< place in Recording::ranks
    std::uint32_t thread = 0;
    std::int64_t at_ns = 0;
};

struct Recording {
    std::vector<RankRecord> ranks;  ///< by rank, one or more
    std::vector<std::string> names;
    std::vector<Arrow> arrows;  ///< as the file has them
    bool is_emulated = false;   ///< a trace of our own: one clock, exact to the nanosecond
    std::optional<std::int64_t> world;
};

/// Reads the traces of one run, gzip allowed. Throws Error{input} for what is no trace or has nothing in it, for two of
/// the same rank, a rank of more than 100 hours, traces of runs of different size and where some, but not all ranks
/// are given; Error{io}.
[[nodiscard]] Recording read_recording(std::span<const std::string> files);

}  // namespace pipeweaver::traces
