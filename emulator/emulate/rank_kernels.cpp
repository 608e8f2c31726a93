// The kernels of one rank, each when it ran.
#include "emulator/emulate/gradient_buckets.hpp"
#include "emulator/emulate/step_times.hpp"
#include "emulator/pricing/stage_memory.hpp"
#include "emulator/step/step_parts.hpp"
#include "pipeweaver/emulator/emulation.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

using namespace schedule;

namespace {

class RankKernels {
public:
    RankKernels(const ScheduledStep& step, RankId rank) : step_(step), rank_(rank), times_(times_by_passes(step)) {}

    std::vector<TracedKernel> run() {
        std::int64_t end = 0;
        for (const TaskId task : step_.schedule().order[index(rank_)]) {
            add_task(index(task));
            end = times_.end[index(task)];
        }
        // In one piece: what follows the last task, and the optimizer when all ranks have met.
        const std::int64_t reduced = end_of_gradients(step_, times_, rank_, end);
        if (reduced > end)
            all_.push_back({Stream::data, "gradients", {}, {}, {}, Duration{end}, Duration{reduced - end}});
        std::stable_sort(all_.begin(), all_.end(),
                         [](const TracedKernel& a, const TracedKernel& b) { return a.start < b.start; });
        return std::move(all_);
    }

private:
    void add_task(std::size_t task) {
        const auto pieces = step_.pieces(task);
        const auto graph = task_graph(step_, task, pieces);
        const Task& its = step_.step().problem.tasks[task];
        std::vector<std::int64_t> ends;
        static_cast<void>(replay(graph.graph, StreamState(streams + graph.graph.inputs(), 0), ends));
        for (std::size_t list = 0; list + 1 < graph.first_kernel.size(); ++list)
            for (std::uint32_t k = graph.first_kernel[list]; k < graph.first_kernel[list + 1]; ++k) {
                const Kernel& kernel = graph.graph.kernels()[k];
                if (kernel.stream == no_stream) continue;
                const Operator& op = graph.operators[list]->operators[graph.operator_of[k]];
                all_.push_back({static_cast<Stream>(kernel.stream), op.name,
                                step_.input().setup->model.modules[graph.piece[list]->module].name, its.microbatch,
                                its.stage, Duration{times_.start[task] + ends[k]} - kernel.duration, kernel.duration});
            }
    }

    const ScheduledStep& step_;
    RankId rank_;
    StepTimes times_;
    std::vector<TracedKernel> all_;
};

}  // namespace

std::vector<TracedKernel> kernels_of(const StepInput& input, const StepProblem& step, const Schedule& schedule,
                                     RankId rank) {
    return RankKernels(ScheduledStep(input, step, schedule), rank).run();
}

}  // namespace pipeweaver::emulator
