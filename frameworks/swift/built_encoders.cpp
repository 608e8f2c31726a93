// Encoders as `megatron sft` of ms-swift builds them: mcore-bridge 1.6.5 (ms-swift 4.5.2 asks for 1.5.0 or later).
#include "frameworks/built_tables.hpp"

#include <array>

namespace pipeweaver::frameworks {

// Table: a row is a family.
std::span<const workloads::Built> built_by_swift() {
    // Encoders of Hugging Face's transformers on each GPU of the first stage; embeddings are parted over context
    // parallel groups behind them. What is trained of them is checkpointed, whatever is said of the language model
    // (ms-swift 4.5.2, megatron_args.py:808).
    constexpr workloads::Lies whole_on_each{workloads::OnTensorRanks::whole, workloads::OnContextRanks::each};
    static constexpr std::array rows{
        workloads::Built{.framework = "ms-swift",
                         .families =
                             "qwen2_vl|qwen2_5_vl|qwen2_5_omni|qwen3_5|qwen3_5_moe|internvl_chat|internvl|glm4v|"
                             "glm4v_moe|kimi_vl|kimi_k25|llama4|gemma4",
                         .source = "mcore-bridge 1.6.5 model/mm_gpt_model.py:46-75, model/mm_gpts/*.py prepare_model",
                         .lies = whole_on_each,
                         .recompute = workloads::EncoderRecompute::always,
                         .recompute_by = "vit-gradient-checkpointing"},
        // Asserted in the first step.
        workloads::Built{.framework = "ms-swift",
                         .families = "qwen3_vl|qwen3_vl_moe",
                         .source = "mcore-bridge 1.6.5 model/mm_gpts/qwen3_vl.py:32-34 and 59",
                         .lies = whole_on_each,
                         .recompute = workloads::EncoderRecompute::always,
                         .recompute_by = "vit-gradient-checkpointing",
                         .first_layers = 3},
    };
    return rows;
}

}  // namespace pipeweaver::frameworks
