// Errors of the memory model by recipe and kind of model: docs/accuracy.md, Memory.
#include "pipeweaver/launch/verdict.hpp"

#include <algorithm>

namespace pipeweaver::launch {

namespace {

// A hybrid may have experts, too, and is less sure.
bool is_of_kind(const workloads::Model& model, std::string_view kind) {
    const workloads::Architecture& backbone = model.modules[model.backbone()].architecture;
    if (kind == "linear attention") return backbone.linear.has_value();
    if (kind == "experts") return backbone.moe.has_value();
    return !backbone.moe && kind == (model.modules.size() > 1 ? "several modules" : "dense");
}

}  // namespace

const std::vector<MemoryError>& memory_errors() {
    static const std::vector<MemoryError> all{
        {"megatron-core-fp8", "ms-swift", "experts", 0.5, 0.1,
         "2 examples of ms-swift in fp8, what they took on the device less 8 % of it"},
        {"megatron-core", "", "linear attention", 0.28, 0.05,
         "11 runs of adapters on Nemotron 3 Nano Omni in Megatron-Bridge on H100 and A100"},
        {"megatron-core-plain", "", "linear attention", 0.28, 0.05, "likewise"},
        {"megatron-core", "ms-swift", "experts", 0.14, 0.1,
         "10 examples of ms-swift in 16 bits, what they took on the device less 8 % of it"},
        {"megatron-core", "ms-swift", "", 0.1, 0.1, "9 examples of ms-swift, likewise"},
        {"megatron-core", "", "dense", 0.051, 0.051, "26 runs of Megatron-Core without tuning on H100"},
        {"megatron-core", "", "experts", 0.08, 0.08, "Moonlight, Gemma 4 26B and Qwen3 30B on H100"},
        {"megatron-core", "", "several modules", 0.1, 0.1, "LLaVA-1.5-7B in Megatron-LM, Qwen2.5-VL-7B in ms-swift"},
        {"megatron-core-overlap", "", "", 0.05, 0.05, "Llama 3.1 8B on H100"},
        {"megatron-core-plain", "", "", 0.08, 0.08, "26 runs on H100, Qwen3-8B on H200"},
        {"nanotron", "", "", 0.06, 0.06, "78 runs on H100"},
        {"torch-fsdp2", "", "pipeline", 0.64, 0.17, "Llama 3.1 405B in torchtitan on 512 H100s, two schedules"},
        {"torch-fsdp2-eager", "", "pipeline", 0.64, 0.2, "Llama 3.1 405B in torchtitan on 512 H100s, two schedules"},
        {"torch-fsdp2", "", "", 0.17, 0.17, "6 runs of torchtitan on H100"},
        {"torch-fsdp2-eager", "", "", 0.2, 0.2, "KempnerForge on H200"},
        {"deepspeed", "", "", 0.2, 0.15, "6 examples of ms-swift on DeepSpeed, what they took less 8 % of it"},
        {"torch-replicas", "", "", 0.35, 0.2, "2 examples of ms-swift on replicas, likewise"},
        {"", "", "", 0.1, 0.1, "no runs of the recipe's own"},
    };
    return all;
}

const MemoryError& memory_error_of(std::string_view recipe, std::string_view entry, const workloads::Model& model,
                                   bool has_pipeline) {
    constexpr std::string_view fp8 = "-fp8";
    const auto is = [](std::string_view asked, std::string_view row) { return row.empty() || row == asked; };
    const std::string_view in_16_bits = recipe.substr(0, recipe.size() - (recipe.ends_with(fp8) ? fp8.size() : 0));
    const auto& all = memory_errors();
    return *std::find_if(all.begin(), all.end(), [&](const MemoryError& row) {
        return (is(recipe, row.recipe) || is(in_16_bits, row.recipe)) && is(entry, row.entry) &&
               (row.kind.empty() || is_of_kind(model, row.kind) || (has_pipeline && row.kind == "pipeline"));
    });
}

}  // namespace pipeweaver::launch
