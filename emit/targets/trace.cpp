#include "pipeweaver/emit/trace.hpp"

#include "emit/targets/trace_events.hpp"

#include <fmt/format.h>

namespace pipeweaver::emit {

using namespace schedule;

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
        Bytes used = problem.ranks[r].base;
        events.memory(r, Duration{0}, used);
        for (const TaskId id : schedule.order[r]) {
            const std::size_t task = index(id);
            const TaskCost& cost = costs[task];
            const std::uint32_t pair = replayer.pair_of(task);
            add_task(events, problem.tasks[task], replay.start[task], cost.duration,
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
