#include "pipeweaver/emit/mimo_script.hpp"

#include "emit/targets/launch_script.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/option_values.hpp"
#include "pipeweaver/launch/megatron_words.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace pipeweaver::emit {

std::string mimo_script(const groups::Placing& placing, const workloads::Model& model, const std::string& planned) {
    const launch::Spelled grids = launch::spell_mimo(placing, model);
    if (!grids.says()) fail(ErrorKind::limit, "MegatronMIMO has no grids for this split: {}", grids.why_not);
    std::string text =
        comment("MegatronMIMO's grids: the language model and the encoder of images on GPUs of their own.") +
        comment(
            "Source it in front of examples/megatron_mimo/qwen35_vl/slurm_sft.sh of Megatron-Bridge "
            "067f987d, of August 2026.") +
        comment("MICRO_BATCH_SIZE is one sample of each replica of the language model.");
    for (const launch::Flag& one : grids.flags) text += fmt::format("export {}={}\n", one.name, one.value);
    const std::vector<launch::Flag> beside = launch::spell_beside_mimo(placing, model);
    if (!beside.empty())
        text += comment("Planned with these, which that script does not set: its provider takes them.");
    for (const launch::Flag& one : beside) text += fmt::format("{}={}\n", one.name, one.value);
    return text + comment("What it was planned for, for `pipeweaver check`.") +
           fmt::format("{}={}\n", launch::planned_variable, quoted_for_shell(planned));
}

}  // namespace pipeweaver::emit
