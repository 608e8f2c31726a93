// When every task of a schedule runs and what its pass is made of: by passes priced already, or kernel by kernel.
#pragma once

#include "emulator/pricing/pass_graph.hpp"
#include "emulator/step/phases.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace pipeweaver::emulator {

/// What a task runs.
struct TaskPass {
    const StageLayers* stage = nullptr;
    const Unit* unit = nullptr;
    const std::vector<DealtItem>* dealt = nullptr;  ///< items of a phase, in place of stage and unit
    PassKind pass = PassKind::forward;
    Recompute recompute = Recompute::none;
    bool makes_last_gradients = false;  ///< the last pass of its stage, on its rank, that makes weight gradients
};

/// A step, a schedule of it, and what both say of its tasks. Keeps references to its arguments.
class ScheduledStep {
public:
    ScheduledStep(const StepInput& input, const StepProblem& step, const schedule::Schedule& schedule);

    const StepInput& input() const { return input_; }
    const StepProblem& step() const { return step_; }
    const schedule::Schedule& schedule() const { return schedule_; }
    const schedule::Replayer& replayer() const { return replayer_; }
    const std::vector<TaskPass>& passes() const { return passes_; }
    const std::vector<schedule::TaskCost>& costs() const { return costs_; }  ///< under the schedule's modes

    /// Gradients are reduced in buckets while these backwards run: they are slowed.
    bool beside_data(std::size_t task) const;

    /// In launch order; together they last as long as the task.
    std::vector<PassPiece> pieces(std::size_t task) const;

private:
    const StepInput& input_;
    const StepProblem& step_;
    const schedule::Schedule& schedule_;
    schedule::Replayer replayer_;
    LayerCosts layers_;
    std::unique_ptr<const DealtCosts> dealt_;  // null: the step has no phases
    std::vector<schedule::TaskCost> costs_;
    std::vector<TaskPass> passes_;
};

struct StepTimes {
    std::vector<std::int64_t> start, end;                ///< per task, ns
    std::vector<std::array<Duration, streams>> exposed;  ///< per task
    /// Of tasks beside whose kernels gradients are reduced: when each of its lists has ended; empty for others.
    std::vector<std::vector<std::int64_t>> list_ends;
    std::vector<Bytes> peak;     ///< per rank, base included
    std::vector<Bytes> holding;  ///< per task: on its rank when it has ended, base included
    std::int64_t kernels = 0;
};

/// From the costs of whole passes.
[[nodiscard]] StepTimes times_by_passes(const ScheduledStep& step);

/// Every kernel of every task, priced and replayed on its own.
[[nodiscard]] StepTimes times_by_kernels(const ScheduledStep& step);

/// A task's kernels with the memory that they take and give back, list by list.
struct TaskGraph {
    OperatorGraph graph;
    std::vector<std::uint32_t> first_kernel;        ///< per list; one more at the end
    std::vector<std::uint32_t> operator_of;         ///< per kernel, in its list
    std::vector<const PricedOperators*> operators;  ///< per list
    std::vector<const PassPiece*> piece;            ///< per list
};

/// Pre: `pieces` = step.pieces(task); they outlive the result.
[[nodiscard]] TaskGraph task_graph(const ScheduledStep& step, std::size_t task, const std::vector<PassPiece>& pieces);

}  // namespace pipeweaver::emulator
