// Attention as Megatron ran it before fused kernels: every score goes through memory.
#pragma once

#include "pipeweaver/costdb/database.hpp"

#include <cstdint>

namespace pipeweaver::validation {

struct AttentionTimes {
    double forward_ns = 0;
    double backward_ns = 0;
};

/// `sequences` of length `seq` with `heads` of `head_dim` on one GPU; S = sequences heads seq^2 scores. Two batched
/// products, each the longer of its operations at 0.6 of the peak and 2 S bytes; mask, softmax and dropout move 9 S
/// bytes forward and 12 S backward. The backward has twice the products. Traffic of the layer: Korthikanti et al.,
/// arXiv 2205.05198, section 4.1.
[[nodiscard]] AttentionTimes unfused_attention(const costdb::CostDatabase& costs, std::int64_t sequences,
                                               std::int64_t heads, std::int64_t seq, std::int64_t head_dim);

}  // namespace pipeweaver::validation
