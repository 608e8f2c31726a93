// A schedule kernel by kernel: what replaying tasks as wholes is held to.
#pragma once

#include "emulator/pricing/operator_graph.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <span>
#include <vector>

namespace pipeweaver::emulator {

struct Expanded {
    OperatorGraph graph;  ///< of all tasks and transfers; its input is when the step begins
    std::vector<std::uint32_t>
        end_kernels;  ///< of all tasks in a row: the last on each of a task's streams, and its outputs
    std::vector<std::uint32_t> first_kernel;  ///< per task: of its kernels, in the order of its graph
    std::vector<std::uint32_t> first_end;     ///< per task: where its begin there; one more at the end
};

/// All kernels of a schedule: each task's graph on the streams of its rank. A task begins when the rank's task before
/// it has ended on all streams, its outputs are there, and what it waits for has come; a transfer of no lag is no
/// kernel. Pre: the schedule completes; per task a graph with at least one kernel, all of `streams_each` streams; its
/// inputs are there when the task begins.
[[nodiscard]] Expanded expand(const schedule::Replayer& replayer, const schedule::Schedule& schedule,
                              std::span<const OperatorGraph* const> graphs, std::uint32_t streams_each);

/// Makespan of the kernels, tails of ranks included: that of replaying tasks as long as their graphs take alone.
[[nodiscard]] Duration makespan_of(const Expanded& expanded, const schedule::Problem& problem);

}  // namespace pipeweaver::emulator
