#include "emulator/emulate/step_times.hpp"

#include "emulator/emulate/expand.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/schedule/fixed_order.hpp"
#include "pipeweaver/schedule/memory.hpp"

#include <algorithm>

namespace pipeweaver::emulator {

using namespace schedule;

namespace {

// Of a task's lists: when the last kernel of each ends.
std::vector<std::int64_t> ends_of_lists(const TaskGraph& task, std::span<const std::int64_t> ends) {
    std::vector<std::int64_t> all;
    for (std::size_t l = 0; l + 1 < task.first_kernel.size(); ++l)
        all.push_back(*std::max_element(ends.begin() + task.first_kernel[l], ends.begin() + task.first_kernel[l + 1]));
    return all;
}

// What a backward's recomputation adds to the cost that build_step() gave it, and copies to that of both passes.
void add_recomputation(const ScheduledStep& step, std::size_t task, PassCost& cost) {
    const TaskPass& pass = step.passes()[task];
    const RankId rank = step.step().problem.tasks[task].rank;
    const Recompute first = step.input().modes_on(rank).front();
    const bool alike = pass.pass == PassKind::forward && !pass.recompute.copies() && !first.copies();
    if (alike || (pass.recompute == first && !first.copies())) return;
    cost = cost_of(step.pieces(task), step.input().setup->recipe);
}

class ByPasses {
public:
    explicit ByPasses(const ScheduledStep& step) : step_(step), tasks_(step.passes().size()) {}

    StepTimes run() {
        out_.exposed.resize(tasks_);
        out_.list_ends.resize(tasks_);
        for (std::size_t task = 0; task < tasks_; ++task) add(task);
        const FixedOrder order(step_.replayer(), step_.schedule());
        static_cast<void>(order.makespan(duration_, out_.end));
        for (std::size_t task = 0; task < tasks_; ++task) {
            out_.start.push_back(out_.end[task] - duration_[task]);
            for (std::int64_t& end : out_.list_ends[task]) end += out_.start[task];
        }
        add_memory();
        return std::move(out_);
    }

private:
    void add(std::size_t task) {
        PassCost cost = step_.step().cost_of(task);
        std::int64_t duration = step_.costs()[task].duration.count();
        if (step_.beside_data(task)) {
            cost = cost_of(step_.pieces(task), step_.input().setup->recipe);
            duration = cost.time.count();
        } else {
            add_recomputation(step_, task, cost);
        }
        duration_.push_back(duration);
        out_.exposed[task] = cost.exposed;
        out_.kernels += std::max<std::int64_t>(1, cost.kernels);
        if (!step_.beside_data(task)) return;
        const auto pieces = step_.pieces(task);
        const auto graph = task_graph(step_, task, pieces);
        std::vector<std::int64_t> ends;
        static_cast<void>(replay(graph.graph, StreamState(streams + 2, 0), ends));
        out_.list_ends[task] = ends_of_lists(graph, ends);
    }

    void add_memory() {
        out_.holding.resize(tasks_);
        for (std::size_t r = 0; r < step_.schedule().order.size(); ++r) {
            const Rank& rank = step_.step().problem.ranks[r];
            Bytes peak = rank.base;
            walk_memory(rank, step_.schedule().order[r], step_.costs(), [&](TaskId task, Bytes during, Bytes after) {
                peak = std::max(peak, during);
                out_.holding[index(task)] = after;
            });
            out_.peak.push_back(peak);
        }
    }

    const ScheduledStep& step_;
    std::size_t tasks_;
    std::vector<std::int64_t> duration_;
    StepTimes out_;
};

class ByKernels {
public:
    explicit ByKernels(const ScheduledStep& step) : step_(step), tasks_(step.passes().size()) {}

    StepTimes run() {
        std::vector<const OperatorGraph*> kernels;
        for (std::size_t task = 0; task < tasks_; ++task) {
            pieces_.push_back(step_.pieces(task));
            graphs_.push_back(task_graph(step_, task, pieces_.back()));
        }
        for (const TaskGraph& graph : graphs_) kernels.push_back(&graph.graph);
        const auto expanded = expand(step_.replayer(), step_.schedule(), kernels, streams);
        std::vector<std::int64_t> ends;
        static_cast<void>(replay(expanded.graph, StreamState(expanded.graph.streams() + 1, 0), ends));
        for (std::size_t task = 0; task < tasks_; ++task) add(task, expanded, ends);
        add_memory();
        return std::move(out_);
    }

private:
    void add(std::size_t task, const Expanded& expanded, const std::vector<std::int64_t>& ends) {
        const std::span<const std::int64_t> mine(ends.data() + expanded.first_kernel[task],
                                                 graphs_[task].graph.kernels().size());
        std::int64_t start = INT64_MAX, end = 0;
        for (std::size_t i = 0; i < mine.size(); ++i) {
            start = std::min(start, mine[i] - graphs_[task].graph.kernels()[i].duration.count());
            end = std::max(end, mine[i]);
        }
        out_.start.push_back(start);
        out_.end.push_back(end);
        out_.exposed.push_back(exposed_between(graphs_[task].graph, mine, start, end));
        out_.list_ends.push_back(step_.beside_data(task) ? ends_of_lists(graphs_[task], mine)
                                                         : std::vector<std::int64_t>{});
        for (const PricedOperators* list : graphs_[task].operators)
            out_.kernels += static_cast<std::int64_t>(list->operators.size());
    }

    // Launch by launch.
    void add_memory() {
        out_.holding.resize(tasks_);
        for (std::size_t r = 0; r < step_.schedule().order.size(); ++r) {
            Bytes held = step_.step().problem.ranks[r].base, peak = held;
            for (const TaskId task : step_.schedule().order[r]) {
                for (const Kernel& kernel : graphs_[index(task)].graph.kernels()) {
                    held += kernel.acquire;
                    peak = std::max(peak, held);
                    held -= kernel.release;
                }
                out_.holding[index(task)] = held;
            }
            out_.peak.push_back(peak);
        }
    }

    const ScheduledStep& step_;
    std::size_t tasks_;
    std::vector<std::vector<PassPiece>> pieces_;
    std::vector<TaskGraph> graphs_;
    StepTimes out_;
};

}  // namespace

StepTimes times_by_passes(const ScheduledStep& step) { return ByPasses(step).run(); }
StepTimes times_by_kernels(const ScheduledStep& step) { return ByKernels(step).run(); }

}  // namespace pipeweaver::emulator
