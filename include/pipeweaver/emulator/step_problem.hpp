// What a step's schedule problem is built from, and what is known of it beside the problem. Built by step.hpp.
#pragma once

#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/emulator/pass_cost.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/schedule/problem.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::emulator {

/// Everything that a step's schedule problem is made of.
struct StepInput {
    std::string name;
    const Setup* setup = nullptr;
    std::int64_t replica = 0;                           ///< which one it is, for the setup's what-if
    std::vector<Chain> chains;                          ///< in topological order of their modules
    ModuleLayouts layouts;                              ///< per module; none: each as the setup's layout
    std::vector<std::vector<std::vector<Unit>>> units;  ///< per microbatch, per chain, then per module in phases
    std::vector<Recompute> modes = usual_modes();
    std::vector<Recompute> mode_of_rank{};  ///< each rank has this one in place of `modes`; none: all have `modes`
    bool priced_split = true;               ///< false: no backward will be split, and StepProblem::split stays empty
    bool input_gradient_frees = true;       ///< false: what a forward holds is held until W (PyTorch's runtime)
    std::int64_t receive_buffers = 2;       ///< tensors that may wait on a rank, per direction and chain
    std::optional<Bytes> capacity;          ///< of every rank; none: capacity_of(*setup)

    /// The modules on the GPUs of a rank, or of the replica where no chain has them.
    std::vector<PlacedModule> placed() const {
        return placed_modules(setup->layout.on(setup->cluster), layouts, setup->model);
    }

    std::span<const Recompute> modes_on(RankId rank) const {
        return mode_of_rank.empty() ? std::span(modes) : std::span(mode_of_rank).subspan(index(rank), 1);
    }
};

/// A tensor that goes from one task to another.
struct Transfer {
    std::size_t edge = 0;                         ///< index into Problem::edges
    Bytes message;                                ///< per GPU
    std::int64_t rows = 0;                        ///< positions
    std::int64_t columns = 0;                     ///< width
    std::optional<costdb::PointToPoint> asked{};  ///< what it was priced as; none: it stays on its rank
    double error = 0;                             ///< of its lag: nine of ten lie within, as a part of it
    Duration lag{};   ///< until it has arrived, if it goes at once; its edge's may be longer
    Duration wire{};  ///< of it, how long it holds its ports (ports.hpp): all but the start-up
};

/// How much of a pass's time is one module's.
struct ModulePart {
    std::size_t module = 0;  ///< index into Model::modules
    double part = 1;
};

/// The modules that a pass works for; their parts sum to 1.
using ModuleMix = std::vector<ModulePart>;

/// What a pair's backward can be split into; see split.hpp.
struct SplitBackward {
    std::vector<schedule::Mode> modes;    ///< in place of the pair's own; none: it is not worth splitting
    std::uint32_t input = 0, weight = 0;  ///< of I and W in mode 0, as StepProblem::cost
    std::uint32_t weight_mix = 0;         ///< of W, as StepProblem::mix; I has that of its B
};

/// An item of a module in phases: StepInput::units[microbatch][chains + phase][unit].
struct DealtItem {
    std::size_t phase = 0;  ///< index into phase_modules(StepInput::layouts)
    std::size_t microbatch = 0;
    std::size_t unit = 0;
};

/// A rank's pass through the modules in phases: it takes as long as the GPU that takes longest.
struct PhasePass {
    TaskId task{};
    std::vector<std::vector<DealtItem>> longest;  ///< per memory mode: what that GPU runs, one after the other
};

struct StepProblem {
    schedule::Problem problem;
    std::vector<PassCost> costs =
        std::vector<PassCost>(1);          ///< what passes cost; many have the same. The first is nothing
    std::vector<std::uint32_t> cost;       ///< per task, in mode 0: index into `costs`
    std::vector<std::uint32_t> recompute;  ///< per task: a full forward of its layers again; nothing for forwards, and
                                           ///< where StepInput has one mode and no splits
    std::vector<ModuleMix> mixes;          ///< the first are each module alone, in the model's order
    std::vector<std::uint32_t> mix;        ///< per task: index into `mixes`; also of what it recomputes
    std::vector<std::size_t> unit;         ///< per task: index into StepInput::units[microbatch][chain]; 0 in a phase
    std::vector<std::size_t> chain;        ///< per task; the number of chains: it is in `phases`
    std::vector<PhasePass> phases;         ///< of modules in phases, in the order of their tasks
    std::vector<std::vector<DealtItem>> dealt;  ///< to each GPU of the replica, those of rank 0 first; none: no phases
    std::vector<SplitBackward> split;           ///< per pair
    std::vector<Transfer> transfers;
    std::vector<StaticMemory> memory;  ///< per rank
    double model_flops = 0;  ///< forward and backward of this replica, nothing counted twice for recomputation
    Duration optimizer{};    ///< after all ranks have met

    const PassCost& cost_of(std::size_t task) const { return costs[cost[task]]; }
    const PassCost& recomputed_by(std::size_t task) const { return costs[recompute[task]]; }

    /// Adds a cost and returns its place in `costs`.
    std::uint32_t keep(const PassCost& one) {
        costs.push_back(one);
        return static_cast<std::uint32_t>(costs.size() - 1);
    }
};

/// The peaks of a replay, each rank's no less than what it holds when the optimizer updates.
[[nodiscard]] std::vector<Bytes> peaks_of(const StepProblem& step, std::vector<Bytes> replayed);

/// Model FLOPs of all units: three forwards for a trained module, two for a frozen one that gradients pass, else one.
[[nodiscard]] double model_flops(const StepInput& input);

/// Model FLOPs utilisation: `model_flops` over what all GPUs of the layout could do in `step` at their dense bf16 peak.
[[nodiscard]] double model_flops_utilization(double model_flops, const workloads::Cluster& cluster,
                                             const Layout& layout, Duration step);

/// How much longer the pair's backward is for what it computes again in that mode than in its first. Nothing where
/// their forwards differ: then one of them copies activations, and what is longer waits.
[[nodiscard]] inline Duration repeated_time(const schedule::Pair& pair, std::uint32_t mode) {
    const schedule::Mode &first = pair.modes.front(), &chosen = pair.modes[mode];
    return chosen.forward == first.forward ? chosen.backward - first.backward : Duration{};
}

/// A step, or what no schedule of it fits into.
struct BuiltStep {
    std::optional<StepProblem> step;
    std::optional<MemoryShortage> shortage;  ///< exactly where there is no step
};

/// For a caller that cannot go on without the step. Throws Error{limit} with the text of the shortage.
[[nodiscard]] StepProblem require_step(BuiltStep built);

/// `step`, unless one of its tasks does not fit its rank even alone. Throws Error{input} where the problem is none.
[[nodiscard]] BuiltStep checked(StepProblem step);

}  // namespace pipeweaver::emulator
