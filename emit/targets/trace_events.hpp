// Events of Chrome's trace format, as text.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace pipeweaver::emit {

/// `text` as a JSON string.
[[nodiscard]] std::string json_text(std::string_view text);

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
