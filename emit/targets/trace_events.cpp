#include "emit/targets/trace_events.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iterator>
#include <utility>

namespace pipeweaver::emit {

namespace {

// Nanoseconds as microseconds, exactly.
std::string microseconds(Duration time) { return fmt::format("{}.{:03}", time.count() / 1000, time.count() % 1000); }

}  // namespace

std::string json_text(std::string_view text) { return nlohmann::json(text).dump(); }

void TraceEvents::begin() { text_ += text_.empty() ? "\n" : ",\n"; }

void TraceEvents::process(std::size_t number, std::string_view name) {
    begin();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"M","pid":{0},"tid":0,"name":"process_name","args":{{"name":{1}}}}},)"
                   "\n"
                   R"({{"ph":"M","pid":{0},"tid":0,"name":"process_sort_index","args":{{"sort_index":{0}}}}})",
                   number, json_text(name));
}

void TraceEvents::thread(std::size_t process, std::size_t thread, std::string_view name) {
    begin();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", process, thread,
                   json_text(name));
}

void TraceEvents::event(std::size_t process, std::size_t thread, std::string_view name, std::string_view category,
                        Duration start, Duration duration, std::string_view arguments) {
    begin();
    fmt::format_to(std::back_inserter(text_),
                   R"({{"ph":"X","pid":{},"tid":{},"name":{},"cat":{},"ts":{},"dur":{},"args":{}}})", process, thread,
                   json_text(name), json_text(category), microseconds(start), microseconds(duration), arguments);
}

void TraceEvents::memory(std::size_t process, Duration time, Bytes used) {
    begin();
    fmt::format_to(std::back_inserter(text_), R"({{"ph":"C","pid":{},"name":"memory","ts":{},"args":{{"bytes":{}}}}})",
                   process, microseconds(time), used.count);
}

std::string TraceEvents::file() {
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[" + std::exchange(text_, {}) + "\n]}\n";
}

}  // namespace pipeweaver::emit
