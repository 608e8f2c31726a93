// What passes through the stages of a step cost and hold: asked of the store first, which other steps fill, too.
//
// Threads      one at a time; the store is shared.
// Determinism  what is remembered is what would be worked out.
#pragma once

#include "emulator/pricing/stage_memory.hpp"
#include "emulator/pricing/stage_store.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/step_problem.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace pipeweaver::emulator {

class StagePrices {
public:
    /// Pre: `input` outlives it.
    explicit StagePrices(const StepInput& input);

    /// The unit, and then the stage, whose passes are asked for below. Pre: they outlive the questions.
    void begin(const Unit& unit);
    void begin(const StageLayers& stage);

    /// LayerCosts::task(), and its time alone.
    PassCost task(PassKind pass, Recompute recompute = Recompute::none);
    Duration task_time(PassKind pass, Recompute recompute);

    /// Time of LayerCosts::stage() for one of the stage's parts, with nothing computed again.
    Duration part_time(std::size_t part, PassKind pass);

    /// LayerCosts::blocks_forward().
    PassCost blocks_forward(Recompute recompute);

    /// pass_memory() without what single blocks hold.
    PassMemory memory(Recompute recompute, bool gradient);

private:
    std::int64_t place_of(const LayerRange& part) const;

    const StepInput& in_;
    LayerCosts costs_;
    StageStore* store_;             // null: everything is worked out
    std::int64_t modules_ = 0;      // their layouts, as the store numbers them
    std::int64_t unit_number_ = 0;  // of the unit, likewise
    std::vector<bool> alike_{};     // per module: its blocks
    const Unit* unit_ = nullptr;
    const StageLayers* stage_ = nullptr;
    std::shared_ptr<KnownStage> known_;
};

}  // namespace pipeweaver::emulator
