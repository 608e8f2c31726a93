// Encoders as VeOmni builds them (ByteDance-Seed/VeOmni d9774494, 21 August 2026).
#include "frameworks/built_tables.hpp"

#include <array>

namespace pipeweaver::frameworks {

// Table: a row is a family.
std::span<const workloads::Built> built_by_veomni() {
    static constexpr std::array rows{
        // No tensor parallelism; every block is shared out by FSDP2, as the language model's. With Ulysses each GPU of
        // a group has a part of the patches, and attention exchanges heads.
        workloads::Built{.framework = "veomni",
                         .families = "qwen2_5_vl|qwen3_vl|qwen3_vl_moe|qwen3_5|qwen3_5_moe|qwen2_5_omni|qwen3_omni_moe",
                         .source = "d9774494 distributed/torch_parallelize.py:455, models/transformers/"
                                   "qwen2_5vl/qwen2_5_vl_gpu_patch_gen_config.py:352, "
                                   "qwen3_vl/qwen3_vl_gpu_patch_gen_config.py:677"},
    };
    return rows;
}

}  // namespace pipeweaver::frameworks
