#include "emulator/emulate/critical_path.hpp"

#include "pipeweaver/schedule/critical_path.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace pipeweaver::emulator {

using namespace schedule;

namespace {

class CriticalPath {
public:
    CriticalPath(const ScheduledStep& step, const StepTimes& times)
        : step_(step), times_(times), causes_(step.replayer(), step.schedule()) {}

    std::vector<CriticalPart> run(const std::vector<RankEnd>& ends, Duration optimizer) {
        const std::size_t rank = static_cast<std::size_t>(
            std::max_element(ends.begin(), ends.end(),
                             [](const RankEnd& a, const RankEnd& b) { return a.gradients < b.gradients; }) -
            ends.begin());
        add("optimizer", {}, optimizer.count());
        add("gradients", {}, ends[rank].gradients - ends[rank].tasks);
        std::optional<std::size_t> task;
        if (const auto& order = step_.schedule().order[rank]; !order.empty()) task = index(order.back());
        while (task) task = walk(*task);
        return parts();
    }

private:
    void add(std::string_view what, std::string_view module, std::int64_t ns) {
        if (ns > 0) sum_[{std::string(what), std::string(module)}] += ns;
    }

    // Adds the task, and the transfer in front of it; returns the task that it waited for.
    std::optional<std::size_t> walk(std::size_t task) {
        add_task(task);
        const auto cause = causes_.of(TaskId{static_cast<std::uint32_t>(task)}, {times_.start, times_.end});
        if (!cause) return std::nullopt;
        add("transfer", {}, cause->lag.count());
        return index(cause->task);
    }

    // From the kernel that ends last back to the task's start.
    void add_task(std::size_t task) {
        const auto pieces = step_.pieces(task);
        const auto graph = task_graph(step_, task, pieces);
        const auto kernels = graph.graph.kernels();
        std::vector<std::int64_t> ends;
        static_cast<void>(replay(graph.graph, StreamState(streams + graph.graph.inputs(), 0), ends));
        std::vector<std::size_t> front(kernels.size(), SIZE_MAX), last(streams, SIZE_MAX);  // on its stream
        for (std::size_t i = 0; i < kernels.size(); ++i) {
            if (kernels[i].stream == no_stream) continue;
            front[i] = last[kernels[i].stream];
            last[kernels[i].stream] = i;
        }
        auto kernel = static_cast<std::size_t>(std::max_element(ends.begin(), ends.end()) - ends.begin());
        while (kernel != SIZE_MAX) {
            add_kernel(graph, kernel);
            const std::int64_t start = ends[kernel] - kernels[kernel].duration.count();
            std::size_t cause = SIZE_MAX;
            if (front[kernel] != SIZE_MAX && ends[front[kernel]] == start) cause = front[kernel];
            for (const Signal wait : graph.graph.waits(kernel))
                if (!wait.is_input() && ends[wait.index()] == start) cause = wait.index();
            kernel = cause;
        }
    }

    void add_kernel(const TaskGraph& graph, std::size_t kernel) {
        const Kernel& one = graph.graph.kernels()[kernel];
        if (one.duration == Duration{0}) return;
        const auto list =
            static_cast<std::size_t>(std::upper_bound(graph.first_kernel.begin(), graph.first_kernel.end(), kernel) -
                                     graph.first_kernel.begin() - 1);
        const Operator& op = graph.operators[list]->operators[graph.operator_of[kernel]];
        const bool computes = one.stream == static_cast<std::uint32_t>(Stream::compute);
        add(computes ? name_of(op.kind()) : name_of(static_cast<Stream>(one.stream)),
            step_.input().setup->model.modules[graph.piece[list]->module].name, one.duration.count());
    }

    std::vector<CriticalPart> parts() const {
        std::vector<CriticalPart> all;
        for (const auto& [what, ns] : sum_) all.push_back({what.first, what.second, Duration{ns}});
        std::stable_sort(all.begin(), all.end(),
                         [](const CriticalPart& a, const CriticalPart& b) { return a.time > b.time; });
        return all;
    }

    const ScheduledStep& step_;
    const StepTimes& times_;
    Causes causes_;
    std::map<std::pair<std::string, std::string>, std::int64_t> sum_;
};

}  // namespace

std::vector<CriticalPart> critical_path(const ScheduledStep& step, const StepTimes& times,
                                        const std::vector<RankEnd>& ends, Duration optimizer) {
    return CriticalPath(step, times).run(ends, optimizer);
}

}  // namespace pipeweaver::emulator
