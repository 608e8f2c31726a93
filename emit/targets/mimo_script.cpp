#include "pipeweaver/emit/mimo_script.hpp"

#include "emit/targets/launch_script.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/recompute.hpp"
#include "pipeweaver/launch/megatron_words.hpp"

#include <fmt/format.h>

#include <string>

namespace pipeweaver::emit {

std::string mimo_script(const groups::Placing& placing, const workloads::Model& model) {
    const launch::Spelled grids = launch::spell_mimo(placing, model);
    if (!grids.says()) fail(ErrorKind::limit, "MegatronMIMO has no grids for this split: {}", grids.why_not);
    std::string text =
        comment("MegatronMIMO's grids: the language model and the encoder of images on GPUs of their own.") +
        comment(
            "Source it in front of examples/megatron_mimo/qwen35_vl/slurm_sft.sh of Megatron-Bridge "
            "067f987d, of August 2026.") +
        comment("MICRO_BATCH_SIZE is one sample of each replica of the language model.");
    for (const groups::Placed& one : placing.groups)
        if (one.recompute != emulator::Recompute::none)
            text += comment(fmt::format("Planned with recomputation, which that script does not set: {} {}.", one.name,
                                        emulator::name_of(one.recompute)));
    for (const launch::Flag& one : grids.flags) text += fmt::format("export {}={}\n", one.name, one.value);
    return text;
}

}  // namespace pipeweaver::emit
