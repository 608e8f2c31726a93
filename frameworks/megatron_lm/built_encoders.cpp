// Encoders as Megatron-LM's examples/multimodal and examples/mimo build them (NVIDIA/Megatron-LM, tag core_v0.16.1).
#include "frameworks/built_tables.hpp"

#include <array>

namespace pipeweaver::frameworks {

// Table: a row is a family.
std::span<const workloads::Built> built_by_megatron_lm() {
    using enum workloads::OnContextRanks;
    using enum workloads::OnTensorRanks;
    static constexpr std::array rows{
        // CLIP, SigLIP, RADIO and InternViT in front of a language model: LLaVAModel, on the first stage. Recomputed
        // with --recompute-vision alone.
        workloads::Built{.framework = "megatron-lm",
                         .families = "llava|llava_llama|llava_mistral|llava_qwen|llava_next",
                         .source = "core_v0.16.1 examples/multimodal/model.py:164-170 and 177-182",
                         .lies = workloads::Lies{all_positions, each},
                         .recompute = workloads::EncoderRecompute::never,
                         .recompute_by = "recompute-vision"},
        // The heads of InternViT-6B become the next multiple of tp.
        workloads::Built{.framework = "megatron-lm",
                         .families = "internvl_chat|internvl",
                         .source = "core_v0.16.1 examples/multimodal/model.py:164-170 and 177-182, config.py:224",
                         .lies = workloads::Lies{all_positions, each},
                         .recompute = workloads::EncoderRecompute::never,
                         .recompute_by = "recompute-vision",
                         .pads_heads = workloads::internvit_6b_heads},
        // examples/mimo: Hugging Face's CLIP, never trained, on every GPU.
        workloads::Built{.framework = "megatron-mimo",
                         .families = "llava|llava_next|llava_next_video",
                         .source = "core_v0.16.1 examples/mimo/model_providers/llava_vlm.py:69-72, "
                                   "hf_clip_encoder.py:22 and 33",
                         .lies = workloads::Lies{whole, each},
                         .recompute = workloads::EncoderRecompute::never},
    };
    return rows;
}

}  // namespace pipeweaver::frameworks
