// Encoders as Megatron-Bridge 0.6.0 builds them (NVIDIA-NeMo/Megatron-Bridge, tag v0.6.0, below
// src/megatron/bridge/models). All are made where `pre_process` is set: on the first stage.
#include "frameworks/built_tables.hpp"

#include <array>

namespace pipeweaver::frameworks {

// Table: a row is a family.
std::span<const workloads::Built> built_by_megatron_bridge() {
    using workloads::Lies;
    using enum workloads::EncoderRecompute;
    using enum workloads::OnContextRanks;
    using enum workloads::OnTensorRanks;
    constexpr std::string_view bridge = "megatron-bridge", dealing = "model.vision_dp_when_cp=true";
    static constexpr std::array rows{
        // Its own vision model of parallel layers. Three outputs of the encoder go into the first three layers of the
        // language model, whose first stage must have as many: deepstack_visual_indexes of all released configurations.
        workloads::Built{.framework = bridge,
                         .families = "qwen3_vl|qwen3_vl_moe",
                         .source = "0.6.0 qwen_vl/modelling_qwen3_vl/transformer_config.py:81,124-125; model.py:360, "
                                   "369 and 617",
                         .lies = Lies{all_positions, each},
                         .first_layers = 3,
                         .loss_per_token = true,
                         .deals = dealing},
        // The same class; its configurations have no such indexes.
        workloads::Built{.framework = bridge,
                         .families = "qwen3_5|qwen3_5_moe",
                         .source = "0.6.0 qwen_vl/qwen35_vl_provider.py:238 and 428, with what Qwen3-VL has",
                         .lies = Lies{all_positions, each},
                         .loss_per_token = true,
                         .deals = dealing},
        // Encoders of Hugging Face's transformers, which nothing splits, and whose checkpointing nothing turns on.
        // Their gradients are averaged over tensor parallel GPUs (../utils/common_utils.py:160-190). Neither these
        // models nor training/vlm_step.py part a sequence over context parallel groups.
        workloads::Built{.framework = bridge,
                         .families = "qwen2_5_vl",
                         .source = "0.6.0 qwen_vl/modeling_qwen25_vl.py:107 and 109",
                         .lies = Lies{whole, each},
                         .has_own_layers = true,
                         .recompute = never,
                         .most_cp = 1,
                         .averages_gradients = true},
        workloads::Built{.framework = bridge,
                         .families = "glm4v|glm4v_moe",
                         .source = "0.6.0 glm_vl/modeling_glm_45v.py:130 and 132",
                         .lies = Lies{whole, each},
                         .has_own_layers = true,
                         .recompute = never,
                         .most_cp = 1,
                         .averages_gradients = true},
        workloads::Built{.framework = bridge,
                         .families = "gemma3",
                         .source = "0.6.0 gemma_vl/modeling_gemma3_vl.py:98, 102 and 170-172",
                         .lies = Lies{whole, each},
                         .has_own_layers = true,
                         .recompute = never,
                         .most_cp = 1,
                         .averages_gradients = true},
        workloads::Built{.framework = bridge,
                         .families = "qwen2_audio",
                         .source = "0.6.0 qwen_audio/modeling_qwen2_audio.py:137 and 144; ../training/audio_lm_step.py",
                         .lies = Lies{whole, each},
                         .has_own_layers = true,
                         .recompute = never,
                         .most_cp = 1,
                         .averages_gradients = true},
        workloads::Built{.framework = bridge,
                         .families = "mistral3",
                         .source = "0.6.0 ministral3/modeling_ministral3.py:127, 160 and 256",
                         .lies = Lies{whole, each},
                         .has_own_layers = true,
                         .recompute = never,
                         .averages_gradients = true},
        workloads::Built{.framework = bridge,
                         .families = "gemma4",
                         .source = "0.6.0 gemma_vl/modeling_gemma4_vl.py:158, 165 and 315",
                         .lies = Lies{whole, each},
                         .has_own_layers = true,
                         .recompute = never,
                         .averages_gradients = true},
        workloads::Built{.framework = bridge,
                         .families = "kimi_k25",
                         .source = "0.6.0 kimi_vl/modeling_kimi_k25_vl.py:215, 218 and 471",
                         .lies = Lies{whole, each},
                         .has_own_layers = true,
                         .recompute = never,
                         .averages_gradients = true},
        workloads::Built{.framework = bridge,
                         .families = "qwen2_5_omni|qwen2_5_omni_thinker",
                         .source = "0.6.0 qwen_omni/modeling_qwen25_omni/thinker_model.py:105-110 and 288",
                         .lies = Lies{whole, each},
                         .has_own_layers = true,
                         .recompute = never,
                         .averages_gradients = true},
        workloads::Built{.framework = bridge,
                         .families = "qwen3_omni_moe",
                         .source = "0.6.0 qwen_omni/modeling_qwen3_omni/thinker_model.py:201-204, "
                                   "qwen_vl/modelling_qwen3_vl/transformer_block.py:678",
                         .lies = Lies{whole, each},
                         .has_own_layers = true,
                         .recompute = never,
                         .first_layers = 3,
                         .averages_gradients = true},
        // LLaVAModel of Megatron Core.
        workloads::Built{.framework = bridge,
                         .families = "nemotron_vl|NemotronH_Nano_VL_V2",
                         .source = "0.6.0 nemotron_vl/nemotron_vl_provider.py:103-104 and 130-131",
                         .lies = Lies{all_positions, each},
                         .recompute = never},
    };
    return rows;
}

}  // namespace pipeweaver::frameworks
