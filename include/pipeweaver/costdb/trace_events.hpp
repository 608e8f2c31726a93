// A PyTorch (Kineto) trace as a stream of events: memory does not grow with the number of events.
//
// Format       JSON, plain or gzip: an object with "traceEvents", or the bare array of events. What profilers write
//              besides JSON is taken: control characters inside strings (read as blanks), NaN, nan, inf, Infinity.
// Limits       strings up to 4 MiB, 64 levels of nesting; beyond, Error{input}.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::costdb {

/// What an event says that a reader wants to know; texts are empty and numbers 0 where it does not.
struct TraceEvent {
    std::int64_t number = 0;  ///< place among the events of the file, from 1
    std::string phase, category, name;
    std::string start, duration;  ///< the digits of `ts` and `dur`, microseconds

    std::string process, thread;  ///< `pid`, `tid`
    std::string arrow;            ///< `id`: one of "s", "t" and "f" that belong together
    std::string label;            ///< what a process or thread is called, of a "M"

    std::string external_id, correlation, device, stream;
    std::vector<std::vector<std::int64_t>> dims;  ///< "Input Dims"; of a list of tensors nothing
    std::vector<std::string> types;               ///< "Input type"
    std::vector<std::string> concrete;            ///< "Concrete Inputs"

    std::string collective, dtype, in_elements, out_elements, group_size, group_ranks, in_split, out_split;
    std::string group_name, sequence;          ///< of a collective: its process group, and its number there
    std::string source, target;                ///< the rank from which or to which a tensor is sent
    std::string awaited_stream, awaited_call;  ///< of a cuda_sync: the stream and the call that recorded the event
};

struct TraceFacts {
    std::string product;     ///< name of the first device, as its driver says
    std::string rank;        ///< of the process that wrote it, where distributedInfo says it
    std::string ranks;       ///< of the whole run, where distributedInfo says it
    std::string sha256;      ///< of the unzipped bytes
    std::int64_t bytes = 0;  ///< unzipped
    std::int64_t events = 0;
};

/// Gives every event to `take`, in the order of the file; the event is only lent. Throws Error{input} for what is no
/// trace (with the byte where it ends to be one), Error{io}, and what `take` throws.
TraceFacts read_trace_events(const std::filesystem::path& path, const std::function<void(const TraceEvent&)>& take);

/// Whole nanoseconds of `digits`, microseconds as an event has them under `key`. Throws Error{input} with file and
/// event for what is no time, and for a duration ("dur") below 0.
[[nodiscard]] std::int64_t time_of(const std::filesystem::path& path, const TraceEvent& event, std::string_view key,
                                   const std::string& digits);

}  // namespace pipeweaver::costdb
