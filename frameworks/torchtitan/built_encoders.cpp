// Encoders as torchtitan builds them (pytorch/torchtitan b5bcd76c, 21 August 2026).
#include "frameworks/built_tables.hpp"

#include <array>

namespace pipeweaver::frameworks {

// Table: a row is a family.
std::span<const workloads::Built> built_by_torchtitan() {
    using enum workloads::OnContextRanks;
    using enum workloads::OnTensorRanks;
    static constexpr std::array rows{
        // Heads and columns are split, norms and what is between blocks whole; with context parallelism it raises.
        workloads::Built{.framework = "torchtitan",
                         .families = "qwen3_5|qwen3_5_moe",
                         .source = "b5bcd76c models/common/vision_encoder_sharding.py:24-120, "
                                   "models/qwen3_5/parallelize.py:59, distributed/pipeline_parallel.py:179",
                         .lies = workloads::Lies{all_positions, each},
                         .most_cp = 1},
    };
    return rows;
}

}  // namespace pipeweaver::frameworks
