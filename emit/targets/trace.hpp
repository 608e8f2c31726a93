// Chrome trace: opens in Perfetto and chrome://tracing.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace pipeweaver::emit {

/// The trace of a replayed schedule has a process for each rank, its tasks on one thread, its memory as a counter. Task
/// names are those that PyTorch's runtime gives its own actions ("PP:0F3"; with sub-microbatches "PP:0F3.1"), so that a
/// prediction and a recorded run join by name. Time stamps are in microseconds with three decimals. Pre: `replay` is of
/// `schedule` and completed.
[[nodiscard]] std::string chrome_trace(const schedule::Replayer& replayer, const schedule::Schedule& schedule,
                                       const schedule::Replay& replay);

/// Events of the format, as text.
class TraceEvents {
public:
    /// A process, listed in the order of its number.
    void process(std::size_t number, std::string_view name);

    void thread(std::size_t process, std::size_t thread, std::string_view name);

    /// Something that lasts. `arguments` is a JSON object.
    void event(std::size_t process, std::size_t thread, std::string_view name, std::string_view category,
               Duration start, Duration duration, std::string_view arguments);

    /// A counter's value from `time` on.
    void memory(std::size_t process, Duration time, Bytes used);

    /// The whole file; the events are gone then.
    [[nodiscard]] std::string file();

private:
    void begin();

    std::string text_;
};

}  // namespace pipeweaver::emit
