// A known way to run a step, as engineers say it to a framework, and what comes of it on some replicas. What is fastest
// of several ways is a matter of their results alone: baselines, layouts and rungs are ways, run, and shown.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/planner/step_recompute.hpp"
#include "pipeweaver/schedule/solution.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

struct Way {
    std::string name{};  ///< of the partition, or, without a pipeline, of what takes its place
    bool has_pipeline = true;
    std::shared_ptr<const emulator::Setup> setup{};  ///< its layout and ZeRO stage; shared with other ways of these
    partition::Partition partition{};                ///< with its chunks
    std::string layers{};  ///< not empty: it was cut by what is said so, see partition::cut_by_layers
    std::string policy{};  ///< of search::policies()
    std::optional<StepRecompute> recompute{};  ///< none: what is fastest of all that fits
};

/// Whether the target's users launch the way; else it is one that other runtimes, or none, run.
[[nodiscard]] bool launches(const struct Target& target, const Way& way);

/// One replica as a way runs it, on shared ports.
struct ReplicaRun {
    schedule::Schedule schedule{};
    Duration makespan{}, optimizer{};
    std::vector<Bytes> peak{};                   ///< of each rank
    std::vector<emulator::Recompute> by_rank{};  ///< what each rank recomputes, where it is by rank

    Duration step() const { return makespan + optimizer; }
};

/// Replicas as a way runs them, all with one recomputation.
struct WayResult {
    std::string why_not{};  ///< not empty: it does not run, for it does not fit or its policy does not apply
    StepRecompute recompute{};
    Duration makespan{}, step{};         ///< of the slowest replica; a step ends with the optimizer
    std::vector<ReplicaRun> replicas{};  ///< in their order
    Bytes short_by{};                    ///< where it does not fit: what it is short of, at least; 0: not known

    bool runs() const { return why_not.empty(); }
};

}  // namespace pipeweaver::planner
