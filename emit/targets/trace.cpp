#include "emit/targets/trace.hpp"

#include "pipeweaver/base/object_text.hpp"
#include "pipeweaver/emit/emulation_files.hpp"
#include "pipeweaver/schedule/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace pipeweaver::emit {

using namespace schedule;
using namespace emulator;

namespace {

// Nanoseconds as microseconds, exactly.
std::string microseconds(Duration time) { return fmt::format("{}.{:03}", time.count() / 1000, time.count() % 1000); }

// Events of the format, as text.
class TraceEvents {
public:
    // A process, listed in the order of its number.
    void process(std::size_t number, std::string_view name) {
        add(R"({{"ph":"M","pid":{0},"tid":0,"name":"process_name","args":{{"name":{1}}}}},)"
            "\n"
            R"({{"ph":"M","pid":{0},"tid":0,"name":"process_sort_index","args":{{"sort_index":{0}}}}})",
            number, json_text(name));
    }

    void thread(std::size_t process, std::size_t thread, std::string_view name) {
        add(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", process, thread,
            json_text(name));
    }

    // Something that lasts. `arguments` is a JSON object.
    void event(std::size_t process, std::size_t thread, std::string_view name, std::string_view category,
               Duration start, Duration duration, std::string_view arguments) {
        add(R"({{"ph":"X","pid":{},"tid":{},"name":{},"cat":{},"ts":{},"dur":{},"args":{}}})", process, thread,
            json_text(name), json_text(category), microseconds(start), microseconds(duration), arguments);
    }

    // One end of an arrow, or a point on its way. It belongs to the event of that thread in which `time` lies.
    enum class Arrow : std::uint8_t { begin, through, end };
    void arrow(Arrow what, std::size_t number, std::size_t process, std::size_t thread, Duration time) {
        constexpr std::string_view phases = "stf";
        add(R"({{"ph":"{}",{}"id":{},"pid":{},"tid":{},"name":"tensor","cat":"tensor","ts":{}}})",
            phases[static_cast<std::size_t>(what)], what == Arrow::end ? R"("bp":"e",)" : "", number, process, thread,
            microseconds(time));
    }

    // A counter's value from `time` on.
    void memory(std::size_t process, Duration time, Bytes used) {
        add(R"({{"ph":"C","pid":{},"name":"memory","ts":{},"args":{{"bytes":{}}}}})", process, microseconds(time),
            used.count);
    }

    // The whole file; the events are gone then.
    std::string file() { return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[" + std::exchange(text_, {}) + "\n]}\n"; }

private:
    template <class... Values>
    void add(fmt::format_string<Values...> format, Values&&... values) {
        text_ += text_.empty() ? "\n" : ",\n";
        fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
    }

    std::string text_;
};

std::string event_name(const Task& task) {
    if (!task.stage || !task.microbatch) return task.label;
    const std::string item = task.item.value_or(0) > 0 ? fmt::format(".{}", *task.item) : "";
    return fmt::format("PP:{}{}{}{}", *task.stage, letter(task.kind), *task.microbatch, item);
}

constexpr std::size_t compute_thread = 0, ending_thread = 1, first_transfer_thread = 2;

class StepTrace {
public:
    StepTrace(const Replayer& replayer, const Schedule& schedule, const Replay& replay, const TraceKnown& known)
        : replayer_(replayer),
          problem_(replayer.problem()),
          schedule_(schedule),
          replay_(replay),
          known_(known),
          costs_(replayer.costs(schedule.mode)),
          to_rank_(problem_.ranks.size()) {
        for (std::size_t e = 0; e < problem_.edges.size(); ++e) {
            const Edge& edge = problem_.edges[e];
            const std::size_t to = index(task_of(edge.to).rank);
            if (index(task_of(edge.from).rank) != to) to_rank_[to].push_back(e);
        }
    }

    std::string text() {
        for (std::size_t r = 0; r < problem_.ranks.size(); ++r) {
            events_.process(
                r, known_.replica ? fmt::format("replica {}, rank {}", *known_.replica, r) : fmt::format("rank {}", r));
            events_.thread(r, compute_thread, "compute");
            add_tasks(r);
            add_ending(r);
            add_transfers(r);
        }
        return events_.file();
    }

private:
    const Task& task_of(TaskId id) const { return problem_.tasks[index(id)]; }
    Duration end_of(TaskId id) const { return replay_.start[index(id)] + costs_[index(id)].duration; }

    void add_tasks(std::size_t rank) {
        events_.memory(rank, Duration{0}, problem_.ranks[rank].base);
        walk_memory(problem_.ranks[rank], schedule_.order[rank], costs_, [&](TaskId id, Bytes during, Bytes after) {
            const TaskCost& cost = costs_[index(id)];
            add_task(id);
            if (cost.acquire.count > 0) events_.memory(rank, replay_.start[index(id)], during);
            if (cost.release.count > 0) events_.memory(rank, end_of(id), after);
        });
    }

    void add_task(TaskId id) {
        const Task& task = task_of(id);
        const std::uint32_t pair = replayer_.pair_of(index(id));
        const std::string again = known_.recompute.empty() ? std::string() : known_.recompute[index(id)];
        events_.event(index(task.rank), compute_thread, event_name(task), std::string(1, letter(task.kind)),
                      replay_.start[index(id)], costs_[index(id)].duration,
                      fmt::format(R"({{"task":{},"module":{},"mode":{}{}}})", json_text(task.label),
                                  json_text(task.module), pair == Replayer::unpaired ? 0 : schedule_.mode[pair],
                                  again.empty() ? "" : fmt::format(R"(,"recompute":{})", json_text(again))));
    }

    // What a rank still does alone, and then the optimizer, which begins when all ranks have met.
    void add_ending(std::size_t rank) {
        const Duration tail = problem_.ranks[rank].tail;
        if (tail == Duration{} && known_.optimizer == Duration{}) return;
        events_.thread(rank, ending_thread, "after the passes");
        const auto& order = schedule_.order[rank];
        const Duration last = order.empty() ? Duration{} : end_of(order.back());
        if (tail > Duration{}) events_.event(rank, ending_thread, "gradient reduction", "gradients", last, tail, "{}");
        if (known_.optimizer > Duration{})
            events_.event(rank, ending_thread, "optimizer", "optimizer", replay_.makespan, known_.optimizer, "{}");
    }

    // Each on the first thread that is free again.
    void add_transfers(std::size_t rank) {
        auto& edges = to_rank_[rank];
        std::stable_sort(edges.begin(), edges.end(), [&](std::size_t a, std::size_t b) {
            return end_of(problem_.edges[a].from) < end_of(problem_.edges[b].from);
        });
        std::vector<Duration> free;
        for (const std::size_t e : edges) {
            const Edge& edge = problem_.edges[e];
            const Duration sent = end_of(edge.from);
            std::optional<std::size_t> thread;
            if (edge.lag > Duration{}) {
                std::size_t lane = 0;
                while (lane < free.size() && free[lane] > sent) ++lane;
                thread = first_transfer_thread + lane;
                if (lane == free.size()) {
                    free.emplace_back();
                    events_.thread(rank, *thread,
                                   lane == 0 ? "transfers in" : fmt::format("transfers in, {}", lane + 1));
                }
                free[lane] = sent + edge.lag;
                add_transfer(edge, *thread);
            }
            add_arrow(e, edge, thread);
        }
    }

    void add_transfer(const Edge& edge, std::size_t thread) {
        const std::size_t from = index(task_of(edge.from).rank), to = index(task_of(edge.to).rank);
        events_.event(to, thread, fmt::format("from rank {}", from), "transfer", end_of(edge.from), edge.lag,
                      fmt::format(R"({{"of":{},"for":{}}})", json_text(task_of(edge.from).label),
                                  json_text(task_of(edge.to).label)));
    }

    // It begins in the last nanosecond of the task that sends.
    void add_arrow(std::size_t number, const Edge& edge, std::optional<std::size_t> thread) {
        const std::size_t from = index(task_of(edge.from).rank), to = index(task_of(edge.to).rank);
        const Duration sent = end_of(edge.from);
        events_.arrow(TraceEvents::Arrow::begin, number, from, compute_thread, sent - Duration{1});
        if (thread) events_.arrow(TraceEvents::Arrow::through, number, to, *thread, sent);
        events_.arrow(TraceEvents::Arrow::end, number, to, compute_thread, replay_.start[index(edge.to)]);
    }

    const Replayer& replayer_;
    const Problem& problem_;
    const Schedule& schedule_;
    const Replay& replay_;
    const TraceKnown& known_;
    std::vector<TaskCost> costs_;
    std::vector<std::vector<std::size_t>> to_rank_;  // edges from other ranks, per rank
    TraceEvents events_;
};

std::string kernel_arguments(const TracedKernel& kernel) {
    std::string text;
    const auto add = [&](std::string_view name, const std::optional<std::int64_t>& value) {
        if (value) text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", name, *value);
    };
    add("microbatch", kernel.microbatch);
    add("stage", kernel.stage);
    return "{" + text + "}";
}

void add_streams(TraceEvents& events, std::size_t process, const std::vector<TracedKernel>& kernels) {
    std::array<bool, streams> used{};
    for (const TracedKernel& kernel : kernels) used[static_cast<std::size_t>(kernel.stream)] = true;
    for (std::size_t s = 0; s < streams; ++s)
        if (used[s]) events.thread(process, s, name_of(static_cast<Stream>(s)));
}

}  // namespace

std::string chrome_trace(const Replayer& replayer, const Schedule& schedule, const Replay& replay,
                         const TraceKnown& known) {
    return StepTrace(replayer, schedule, replay, known).text();
}

std::string kernel_trace(const ReplicaEmulation& replica, const std::vector<RankKernels>& ranks) {
    TraceEvents events;
    for (const RankKernels& one : ranks) {
        const auto process = static_cast<std::size_t>(one.rank);
        events.process(process, fmt::format("rank {}", one.rank));
        add_streams(events, process, one.kernels);
        for (const TracedKernel& kernel : one.kernels)
            events.event(process, static_cast<std::size_t>(kernel.stream), kernel.name, kernel.module, kernel.start,
                         kernel.duration, kernel_arguments(kernel));
        for (const MemoryPoint& point : replica.memory[process].timeline) events.memory(process, point.at, point.held);
    }
    return events.file();
}

std::string pass_trace(const planner::EmulatedStep& step, const ReplicaEmulation& replica) {
    const Replayer replayer(step.step.problem);
    return chrome_trace(replayer, step.schedule, replayer.replay(step.schedule),
                        {.optimizer = replica.step - replica.makespan});
}

}  // namespace pipeweaver::emit
