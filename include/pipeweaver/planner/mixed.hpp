// One training on two groups of GPUs, each of a kind of its own (QSync, IPDPS 2024; two data centres: StreamRL, arXiv
// 2504.15930): each trains replicas of the whole model in a layout of its own on some of a step's microbatches.
//
// Shares       so many that the slower group is as early as can be; every group must hold the model in its memory.
// Exchange     at the end each group has the sum of its own gradients: it sends them to the other, all its nodes at
//              once, through whichever network has less; the links take both directions at once. Nothing hides it.
// Layers       or both have ranks of every replica's pipeline (below), and exchange no gradients.
// Without      a group alone takes the whole step where that is shorter: a second group never makes a step longer.
// Determinism  a function of the arguments: not of the executor.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/job.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// What a group takes for so many microbatches, no less than for fewer; none: it cannot run so many.
using StepOf = std::function<std::optional<Duration>(std::size_t)>;

struct Shared {
    std::size_t first = 0;  ///< microbatches of the first group; the second has the others
    Duration slower{};      ///< what the slower group takes
};

/// The best share of `microbatches` between two groups that need at least so many each; of equal ones one of those
/// nearest to where both are through together. None: there are too few, or a group cannot run any share.
/// Asks each group O(log microbatches) times.
[[nodiscard]] std::optional<Shared> share_out(std::size_t microbatches, std::size_t least_of_first,
                                              std::size_t least_of_second, const StepOf& first, const StepOf& second);

/// The gradients of all trained parameters, as the recipe adds them up.
[[nodiscard]] Bytes gradients_of(const emulator::Setup& setup);

/// Between nodes of both clusters: the smaller of what their nodes' networks carry together; 0: one has none.
[[nodiscard]] Bandwidth bridge_of(const workloads::Cluster& first, const workloads::Cluster& second);

/// A group of GPUs: the job in layouts of which the fastest is taken for each number of microbatches, the earlier of
/// equal ones: one that suits all of them, one that suits its share.
struct KindOfGpus {
    std::vector<Job> jobs;  ///< at least one, all with the same model and recipe
};

/// What a group does in a step, as `emulate` says it under 1F1B.
struct GroupStep {
    std::size_t microbatches = 0;
    emulator::Layout layout{};
    int zero = 0;
    std::string recompute{};
    std::string products{};  ///< as emulator::formats_of() says it; empty: all in bf16
    Duration step{};
    Bytes peak{};  ///< of the fullest rank
};

/// A step of both groups.
struct MixedStep {
    GroupStep first{}, second{};
    Duration exchange{};
    Duration step{};
};

// Replicas whose pipelines have their first ranks on GPUs of one kind and their last on another: layers shared out by
// speed and memory, so that no gradients cross between the kinds.
//
// A step       as `emulate` has it under 1F1B, a chunk a rank, each rank as if all of the pipeline's were of its kind:
//              passes, memory, gradients of its copies (reduced after the last backward, never beside it), optimizer.
//              A kind recomputes as little as all of its ranks fit with.
// Between      what goes from the last rank of one kind to the first of the other goes through each GPU's part of its
//              node's network, and of the bridge, if all GPUs of a rank send at once; no faster than inside a kind.
//              The halves of a tied embedding are added up there, too.
// Layers       partition/kinds.hpp, in all layouts with one tp for both kinds, either kind first; the fastest few are
//              emulated, then layers go from rank to rank while a step gets shorter. Of few cuts all are emulated.
// Determinism  A function of the arguments: not of the executor.

/// Some ranks of a pipeline, all of one kind of GPU.
struct KindInPipeline {
    std::shared_ptr<const emulator::Setup> setup;  ///< in the layout of the whole pipeline, without buckets
    std::int64_t ranks = 0;
};

/// What they are given.
struct StagesOfKind {
    std::vector<std::int64_t> layers;  ///< of all modules, per rank
    std::string recompute{};
    std::string products{};  ///< as emulator::formats_of() says it; empty: all in bf16
    Bytes peak{};            ///< of the fullest
};

struct KindsStep {
    StagesOfKind first, last;
    Duration step{};
};

/// A step of the partition, a stage a rank, with these microbatches in each replica; none: it does not fit, or 1F1B
/// comes to a stop. Pre: the kinds' ranks are those of the layout of both setups.
[[nodiscard]] std::optional<KindsStep> step_of_kinds(const KindInPipeline& first, const KindInPipeline& last,
                                                     const partition::Partition& partition,
                                                     const std::vector<std::vector<workloads::Microbatch>>& replicas,
                                                     Bandwidth bridge);

struct PipelineOfKinds {
    emulator::Layout layout{};
    int zero = 0;
    std::size_t microbatches = 0;
    bool turned = false;      ///< the second kind has the first ranks
    StagesOfKind one, other;  ///< of the first kind, and of the second
    Duration step{};
};

/// The fastest that is found on all GPUs of both; none: none fits, or no layout divides both. The setups train one
/// model; their own layouts do not count.
[[nodiscard]] std::optional<PipelineOfKinds> plan_pipeline_of_kinds(const emulator::Setup& one,
                                                                    const emulator::Setup& other, const Batch& batch,
                                                                    Bandwidth bridge, const Executor& execute);

struct MixedPlan {
    std::optional<GroupStep> first, second;  ///< alone; none: the group cannot hold the model
    std::optional<MixedStep> both{};         ///< none: no share runs
    std::optional<PipelineOfKinds> pipeline{};

    enum class Best : std::uint8_t { none, first, second, both, pipeline };
    /// The shortest; of equal ones the earlier.
    [[nodiscard]] Best best() const;
};

/// Each alone, and a step of both, without a pipeline. None of the groups: it cannot hold the model. `batch` is that of
/// the first group's job. Throws as try_emulate().
[[nodiscard]] MixedPlan plan_mixed(const std::optional<KindOfGpus>& first, const std::optional<KindOfGpus>& second,
                                   const Batch& batch, Bandwidth bridge, const Executor& execute);

}  // namespace pipeweaver::planner
