#include "emit/targets/trace.hpp"

#include "pipeweaver/base/object_text.hpp"
#include "pipeweaver/schedule/memory.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace pipeweaver::emit {

using namespace schedule;

namespace {

// Nanoseconds as microseconds, exactly.
std::string microseconds(Duration time) { return fmt::format("{}.{:03}", time.count() / 1000, time.count() % 1000); }

}  // namespace

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

namespace {

std::string event_name(const Task& task) {
    if (!task.stage || !task.microbatch) return task.label;
    const std::string item = task.item.value_or(0) > 0 ? fmt::format(".{}", *task.item) : "";
    return fmt::format("PP:{}{}{}{}", *task.stage, letter(task.kind), *task.microbatch, item);
}

void add_task(TraceEvents& events, const Task& task, Duration start, Duration duration, std::uint32_t mode) {
    events.event(
        index(task.rank), 0, event_name(task), std::string(1, letter(task.kind)), start, duration,
        fmt::format(R"({{"task":{},"module":{},"mode":{}}})", json_text(task.label), json_text(task.module), mode));
}

}  // namespace

std::string chrome_trace(const Replayer& replayer, const Schedule& schedule, const Replay& replay) {
    const Problem& problem = replayer.problem();
    const auto costs = replayer.costs(schedule.mode);
    TraceEvents events;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        events.process(r, fmt::format("rank {}", r));
        events.thread(r, 0, "compute");
        events.memory(r, Duration{0}, problem.ranks[r].base);
        walk_memory(problem.ranks[r], schedule.order[r], costs, [&](TaskId id, Bytes during, Bytes after) {
            const std::size_t task = index(id);
            const TaskCost& cost = costs[task];
            const Duration start = replay.start[task];
            const std::uint32_t pair = replayer.pair_of(task);
            add_task(events, problem.tasks[task], start, cost.duration,
                     pair == Replayer::unpaired ? 0 : schedule.mode[pair]);
            if (cost.acquire.count > 0) events.memory(r, start, during);
            if (cost.release.count > 0) events.memory(r, start + cost.duration, after);
        });
    }
    return events.file();
}

}  // namespace pipeweaver::emit
