#include "pipeweaver/emit/trace.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipeweaver::emit {

using namespace emulator;

namespace {

// Nanoseconds as microseconds, exactly.
std::string microseconds(Duration time) { return fmt::format("{}.{:03}", time.count() / 1000, time.count() % 1000); }

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

std::string event_name(const Task& task) {
    if (!task.stage || !task.microbatch) return task.label;
    const std::string item = task.item.value_or(0) > 0 ? fmt::format(".{}", *task.item) : "";
    return fmt::format("PP:{}{}{}{}", *task.stage, letter(task.kind), *task.microbatch, item);
}

class Events {
public:
    void add(const std::string& event) { text_ += (text_.empty() ? "\n" : ",\n") + event; }

    void rank(std::size_t r) {
        add(fmt::format(R"({{"ph":"M","pid":{},"tid":0,"name":"process_name","args":{{"name":"rank {}"}}}})", r, r));
        add(fmt::format(R"({{"ph":"M","pid":{},"tid":0,"name":"process_sort_index","args":{{"sort_index":{}}}}})", r,
                        r));
        add(fmt::format(R"({{"ph":"M","pid":{},"tid":0,"name":"thread_name","args":{{"name":"compute"}}}})", r));
    }

    void task(const Task& task, Duration start, Duration duration, std::uint32_t mode) {
        add(fmt::format(
            R"({{"ph":"X","pid":{},"tid":0,"name":{},"cat":"{}","ts":{},"dur":{},"args":{{"task":{},"module":{},"mode":{}}}}})",
            index(task.rank), quoted(event_name(task)), letter(task.kind), microseconds(start), microseconds(duration),
            quoted(task.label), quoted(task.module), mode));
    }

    void memory(std::size_t r, Duration time, Bytes used) {
        add(fmt::format(R"({{"ph":"C","pid":{},"name":"memory","ts":{},"args":{{"bytes":{}}}}})", r, microseconds(time),
                        used.count));
    }

    std::string file() const { return fmt::format("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[{}\n]}}\n", text_); }

private:
    std::string text_;
};

}  // namespace

std::string chrome_trace(const Replayer& replayer, const Schedule& schedule, const Replay& replay) {
    const Problem& problem = replayer.problem();
    const auto costs = replayer.costs(schedule.mode);
    Events events;
    for (std::size_t r = 0; r < schedule.order.size(); ++r) {
        events.rank(r);
        Bytes used = problem.ranks[r].base;
        events.memory(r, Duration{0}, used);
        for (const TaskId id : schedule.order[r]) {
            const std::size_t task = index(id);
            const TaskCost& cost = costs[task];
            const std::uint32_t pair = replayer.pair_of(task);
            events.task(problem.tasks[task], replay.start[task], cost.duration,
                        pair == Replayer::unpaired ? 0 : schedule.mode[pair]);
            used += cost.acquire;
            if (cost.acquire.count > 0) events.memory(r, replay.start[task], used);
            used -= cost.release;
            if (cost.release.count > 0) events.memory(r, replay.start[task] + cost.duration, used);
        }
    }
    return events.file();
}

}  // namespace pipeweaver::emit
