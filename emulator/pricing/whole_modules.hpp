// Dealt modules of a step as a step of their own: whole on every GPU, each GPU a copy.
#pragma once

#include "pipeweaver/emulator/step_problem.hpp"

namespace pipeweaver::emulator {

class WholeModules {
public:
    /// Pre: `input` has dealt modules.
    explicit WholeModules(const StepInput& input);

    WholeModules(const WholeModules&) = delete;
    WholeModules& operator=(const WholeModules&) = delete;

    /// One rank of one GPU with a single stage, all layers of the dealt modules; as many copies as the layout has GPUs.
    const StepInput& input() const { return input_; }

    /// All layers of one of them, on a rank of the pipeline's.
    static StageLayers stage(const DealtModule& dealt, RankId rank);

private:
    Setup setup_;
    StepInput input_;
};

}  // namespace pipeweaver::emulator
