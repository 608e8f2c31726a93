#include "emulator/emulate/expand.hpp"

#include "emulator/pricing/checked_sum.hpp"
#include "pipeweaver/base/assert.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

using namespace schedule;

namespace {

class Expansion {
public:
    Expansion(const Replayer& replayer, std::span<const OperatorGraph* const> graphs, std::uint32_t streams_each)
        : replayer_(replayer),
          graphs_(graphs),
          streams_(streams_each),
          out_{
              OperatorGraph(static_cast<std::uint32_t>(replayer.problem().ranks.size()) * streams_each, 1), {}, {}, {}},
          ends_(graphs.size()) {}

    Expanded run(const Schedule& schedule) {
        std::size_t kernels = 0, waits = 0;
        for (const OperatorGraph* graph : graphs_) {
            kernels += graph->kernels().size() + 1;
            waits += graph->kernels().size() + streams_ * streams_;
        }
        out_.graph.reserve(kernels, waits);
        out_.first_kernel.resize(graphs_.size());
        for (const std::size_t task : in_order_of_start(schedule)) add(task);
        for (std::size_t task = 0; task < graphs_.size(); ++task) {
            out_.first_end.push_back(static_cast<std::uint32_t>(out_.end_kernels.size()));
            out_.end_kernels.insert(out_.end_kernels.end(), ends_[task].begin(), ends_[task].end());
        }
        out_.first_end.push_back(static_cast<std::uint32_t>(out_.end_kernels.size()));
        return std::move(out_);
    }

private:
    // Every task after those that it waits for and after the one before it on its rank; remembers the latter.
    std::vector<std::size_t> in_order_of_start(const Schedule& schedule) {
        const std::size_t tasks = graphs_.size();
        before_.assign(tasks, tasks);
        std::vector<std::size_t> after(tasks, tasks), waiting(tasks, 0), ready, order;
        for (const auto& rank : schedule.order)
            for (std::size_t i = 1; i < rank.size(); ++i) {
                before_[index(rank[i])] = index(rank[i - 1]);
                after[index(rank[i - 1])] = index(rank[i]);
            }
        for (std::size_t task = 0; task < tasks; ++task) {
            waiting[task] = replayer_.predecessors(task).size() + (before_[task] < tasks ? 1 : 0);
            if (waiting[task] == 0) ready.push_back(task);
        }
        const auto release = [&](std::size_t task) {
            if (--waiting[task] == 0) ready.push_back(task);
        };
        while (!ready.empty()) {
            const std::size_t task = ready.back();
            ready.pop_back();
            order.push_back(task);
            for (const auto& arc : replayer_.successors(task)) release(arc.task);
            if (after[task] < tasks) release(after[task]);
        }
        PIPEWEAVER_ASSERT(order.size() == tasks);
        return order;
    }

    // What a task waits for before it begins.
    std::vector<Signal> start_of(std::size_t task) {
        std::vector<Signal> start;
        const auto add_ends = [&](std::size_t of) {
            for (const std::uint32_t kernel : ends_[of]) start.push_back(Signal::kernel(kernel));
        };
        if (before_[task] < graphs_.size()) add_ends(before_[task]);
        for (const auto& arc : replayer_.predecessors(task)) {
            if (arc.lag_ns == 0) {
                add_ends(arc.task);
                continue;
            }
            std::vector<Signal> sent;
            for (const std::uint32_t kernel : ends_[arc.task]) sent.push_back(Signal::kernel(kernel));
            start.push_back(out_.graph.launch(no_stream, Duration{arc.lag_ns}, sent));
        }
        if (start.empty()) start.push_back(Signal::input(0));
        return start;
    }

    void add(std::size_t task) {
        const OperatorGraph& graph = *graphs_[task];
        const auto first_stream = static_cast<std::uint32_t>(replayer_.problem().tasks[task].rank) * streams_;
        const auto start = start_of(task);
        const auto first_kernel = static_cast<std::uint32_t>(out_.graph.kernels().size());
        out_.first_kernel[task] = first_kernel;
        std::vector<std::uint32_t> last(streams_, no_stream);
        std::vector<Signal> waits;
        for (std::size_t i = 0; i < graph.kernels().size(); ++i) {
            const Kernel& kernel = graph.kernels()[i];
            waits.clear();
            // The first on its stream waits for the task to begin; the next ones wait for it.
            const bool is_first = kernel.stream == no_stream || last[kernel.stream] == no_stream;
            if (is_first) waits = start;
            for (const Signal wait : graph.waits(i))
                if (!wait.is_input()) waits.push_back(Signal::kernel(first_kernel + wait.index()));
            const auto stream = kernel.stream == no_stream ? no_stream : first_stream + kernel.stream;
            const Signal launched = out_.graph.launch(stream, kernel.duration, waits, kernel.acquire, kernel.release);
            if (kernel.stream != no_stream) last[kernel.stream] = launched.index();
        }
        for (const std::uint32_t kernel : last)
            if (kernel != no_stream) ends_[task].push_back(kernel);
        for (const Signal output : graph.outputs())
            if (!output.is_input()) ends_[task].push_back(first_kernel + output.index());
    }

    const Replayer& replayer_;
    std::span<const OperatorGraph* const> graphs_;
    std::uint32_t streams_;
    Expanded out_;
    std::vector<std::vector<std::uint32_t>> ends_;  // per task, kernels
    std::vector<std::size_t> before_;               // per task: the one before it on its rank, or the number of tasks
};

}  // namespace

Expanded expand(const Replayer& replayer, const Schedule& schedule, std::span<const OperatorGraph* const> graphs,
                std::uint32_t streams_each) {
    PIPEWEAVER_ASSERT(graphs.size() == replayer.problem().tasks.size());
    return Expansion(replayer, graphs, streams_each).run(schedule);
}

Duration makespan_of(const Expanded& expanded, const Problem& problem) {
    std::vector<std::int64_t> ends;
    static_cast<void>(replay(expanded.graph, StreamState(expanded.graph.streams() + 1, 0), ends));
    std::int64_t latest = 0;
    for (std::size_t task = 0; task < problem.tasks.size(); ++task) {
        const std::int64_t tail = problem.ranks[index(problem.tasks[task].rank)].tail.count();
        for (std::uint32_t k = expanded.first_end[task]; k < expanded.first_end[task + 1]; ++k)
            latest = std::max(latest, checked_sum(ends[expanded.end_kernels[k]], tail));
    }
    return Duration{latest};
}

}  // namespace pipeweaver::emulator
