// A step with its loader: what GPUs wait for samples, and what would end that.
#pragma once

#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/loader/advice.hpp"
#include "pipeweaver/loader/loader.hpp"
#include "pipeweaver/schedule/problem.hpp"
#include "pipeweaver/schedule/solution.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// A stage of a loader against a step.
struct InputStage {
    std::string name;
    Duration work{};                      ///< of a step, in the replica that has most
    Duration step_without{};              ///< the step if this stage took nothing: its work done ahead, or cached
    std::optional<std::int64_t> cores{};  ///< of `enough`, where each stage has cores of its own: loader::share_cores()
};

/// The same step over and over, as its loader feeds it.
struct Input {
    loader::Loader loader;
    std::string why_not{};   ///< not empty, and no more known: why_no_input()
    std::int64_t steps = 0;  ///< that were replayed, the queue empty at first; what follows is of the second half
    Duration step{};         ///< in the mean, and no less than loader::least_time() lets last
    Duration longest{};
    Duration waits{};  ///< of `step`, longer than with samples that cost nothing
    Duration first{};  ///< the very first step
    std::vector<InputStage> stages;
    std::optional<std::size_t> decides{};   ///< of `stages`, the one without which the step is shortest; none: no waits
    std::optional<loader::Queue> enough{};  ///< loader::enough(); none: no queue is
    std::int64_t most_tried = loader::most_workers_advised;  ///< workers, for `enough`
    std::vector<std::string> left_out{};  ///< what is counted as nothing, or not looked at: sentences
};

/// When a replica's passes of each of its microbatches begin, and how long its step is.
struct InputReplica {
    const std::vector<workloads::Microbatch>* microbatches = nullptr;
    std::vector<Duration> begins;  ///< of each microbatch, from the step's begin
    Duration step{};
};

/// When the first pass of each of `microbatches` begins; 0 of one that has none. Pre: the schedule completes on the
/// problem, whose tasks are of no others.
[[nodiscard]] std::vector<Duration> begins_of(const schedule::Problem& problem, const schedule::Schedule& schedule,
                                              std::size_t microbatches);

/// Why the loader cannot be replayed against steps of these microbatches, by replica: replicas that wait for each other
/// at each microbatch do not have as many, a step takes loader::most_work to load, or windows come round too seldom.
/// None: it can.
[[nodiscard]] std::optional<std::string> why_no_input(const loader::Loader& loader, const workloads::Model& model,
                                                      const std::vector<workloads::Sample>& samples,
                                                      const std::vector<std::vector<workloads::Microbatch>>& replicas);

/// Throws Error{input} with that.
void check_input(const loader::Loader& loader, const workloads::Model& model,
                 const std::vector<workloads::Sample>& samples,
                 const std::vector<std::vector<workloads::Microbatch>>& replicas);

/// Replays the loader against the step. A pack is a microbatch; a replica takes them in the order in which they begin,
/// and what it waits delays all that follows in its step. Of more than 64 replicas those with the longest steps and
/// with the most to load are looked at. Pre: why_no_input() has nothing to say.
[[nodiscard]] Input input_of(const loader::Loader& loader, const workloads::Model& model,
                             const std::vector<workloads::Sample>& samples, const std::vector<InputReplica>& replicas);

}  // namespace pipeweaver::planner
