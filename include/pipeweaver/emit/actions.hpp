// actions.json ("pipeweaver-actions/1"): what each rank does, in order: compute, send, receive, wait, reduce. Complete
// enough for an executor of another framework; docs/formats.md describes every field.
//
// Order        One global order, by the replay's start times. When a task is appended to its rank's list, the sends of
//              its results follow it there, and the receives are appended to the receivers' lists at that same moment;
//              a wait stands before the task that needs the tensor. Sends and receives between two ranks then come in
//              the same order on both sides, which cannot deadlock and needs no tags (they are given all the same).
#pragma once

#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::emit {

/// A stage as those who build its chunk see it.
struct StageRole {
    std::string chain;
    bool trained = true;              ///< some part of it is
    bool gradient = true;             ///< a backward reaches it
    bool reads_batch = false;         ///< a module begins here: it takes raw data, its items or tokens
    std::vector<std::string> inputs;  ///< chains whose outputs it takes, in the model's order
    std::vector<bool> parts_trained;
};

/// Rows of a task's output, one behind the last.
using Rows = std::pair<std::int64_t, std::int64_t>;

/// What a replica's action lists say beside the schedule.
struct ReplicaData {
    std::size_t replica = 0, replicas = 1;
    std::vector<StageRole> stages;          ///< per stage; none: all are trained, chains are those of the tasks
    std::vector<double> loss_weight;        ///< per task; none: 1 for each whose output nobody takes
    std::vector<std::vector<Rows>> slices;  ///< per transfer: the rows of the output that it takes; none: all
};

/// Of replica `replica` of the plan. A loss task's weight is its share of the step's loss tokens; of a microbatch with
/// several units, by their positions; of a step without loss tokens (generators), by the positions of all.
[[nodiscard]] ReplicaData replica_data(const planner::Request& request, const planner::Plan& plan, std::size_t replica);

/// Pre: `replay` is of `schedule` on `step.problem` and completed. `modes` names the pairs' modes.
[[nodiscard]] std::string actions(const emulator::StepProblem& step, const schedule::Schedule& schedule,
                                  const schedule::Replay& replay, const std::vector<emulator::Recompute>& modes,
                                  const ReplicaData& data);

/// The same for any solved problem whose tasks say stage and microbatch: an edge from forward to forward is a tensor of
/// unknown shape, one from backward to backward its gradient. Throws Error{limit} where the problem does not say enough
/// (its stages, a task's stage or microbatch) or has tasks X.
[[nodiscard]] std::string actions(const schedule::Problem& problem, const schedule::Schedule& schedule);

/// Per rank: the most forward passes whose activations are alive at once. Recomputed whole, a pass has none between its
/// forward and its backward.
[[nodiscard]] std::vector<std::int64_t> most_alive(const schedule::Problem& problem, const schedule::Schedule& schedule,
                                                   const std::vector<emulator::Recompute>& modes);

/// Per rank: most bytes that wait in receive buffers at once under the order above.
[[nodiscard]] std::vector<Bytes> receive_buffers_needed(const emulator::StepProblem& step,
                                                        const schedule::Replay& replay);

}  // namespace pipeweaver::emit
