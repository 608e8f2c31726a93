#include "emulator/pricing/whole_modules.hpp"

namespace pipeweaver::emulator {

WholeModules::WholeModules(const StepInput& input)
    : setup_(with_layout(*input.setup, {.tp = 1, .pp = 1, .dp = input.setup->layout.gpus()})) {
    setup_.store.reset();
    setup_.recipe.execution.experts.tensor_parallel = 1;
    input_.setup = &setup_;
    input_.replica = input.replica;
    StageLayers all;
    for (const DealtModule& dealt : input.dealt) all.parts.push_back(stage(dealt, RankId{0}).parts.front());
    input_.chains = {Chain{"", {std::move(all)}}};
}

StageLayers WholeModules::stage(const DealtModule& dealt, RankId rank) {
    return {rank, {{dealt.module, 0, dealt.layers}}};
}

}  // namespace pipeweaver::emulator
