// What comes before a step's chains and after them: modules in phases, data parallel over the GPUs of the replica.
//
//   rank 0  |vit F vit F ..|. exchange .|F0 F1 B0 .. chain .. B5|. gradients .|vit B vit B|
//   rank 1  |vit F vit F vit F|           .. F0 F1 B0 .. B5 ..                 |vit B vit B vit B|
//
// Items        whole ones, dealt by the time of their forward and backward, longest first, each to the GPU with the
//              least so far. A GPU runs its items one after the other, so one at a time needs memory in passing.
// Tasks        a forward on each rank that has items, and a backward where there is one: as long as the rank's slowest
//              GPU, with the memory of its fullest. Forwards of the chain's first stage wait for all forwards of the
//              phase and for the exchange, in which every GPU of rank 0 takes in its part of all outputs; the backwards
//              of the phase wait for all backwards of the first stage and for the gradients' way back, as long.
// Left out     what a GPU could send while others still compute; ports (ports.hpp) are free for the exchange.
#pragma once

#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/step_problem.hpp"

#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::emulator {

/// What passes over items of modules in phases cost and consist of.
class DealtCosts {
public:
    /// Keeps a reference to `input`.
    explicit DealtCosts(const StepInput& input);

    /// Of a GPU of the rank that runs these items in a row.
    PassCost cost(RankId rank, std::span<const DealtItem> items, PassKind pass, Recompute recompute);
    std::vector<PassPiece> pieces(RankId rank, std::span<const DealtItem> items, PassKind pass,
                                  Recompute recompute) const;

    /// What a full recomputation of them would run again.
    PassCost blocks_forward(RankId rank, std::span<const DealtItem> items);

    const std::vector<PassShape>& shapes(const DealtItem& item) const;

    /// All layers of the item's module, on a rank of the pipeline's.
    StageLayers stage(const DealtItem& item, RankId rank) const;
    const std::vector<std::size_t>& modules() const { return modules_; }

private:
    const StepInput& input_;
    std::vector<std::size_t> modules_;  // in phases
    LayerCosts layers_;
};

/// How a GPU of rank 0 gets its part of all outputs; none: nothing has to go anywhere.
[[nodiscard]] std::optional<costdb::PointToPoint> exchange_of(const StepInput& input);

/// Adds the phases to a step that has its chain's tasks, and to its memory what arrives on rank 0.
void add_phases(const StepInput& input, StepProblem& step);

}  // namespace pipeweaver::emulator
