#include "pipeweaver/frameworks/own_blocks.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::frameworks {

// A norm of Transformer Engine keeps its input, 2 bytes. One that is spelled out in 32 bits keeps 12: the value that is
// squared, the one that is multiplied (two copies), and the normed one for the gradient of its weights; a router's,
// which has no weights, 8, and 4 more for the scale behind it and the product. Gemma 4 with experts has six of these,
// for the inputs of experts, shared expert and router and behind the three sums, and one of Transformer Engine behind
// the attention; the input of the second norm, 2 bytes, is not kept. Without experts it has four, of which memory.md
// counts one input each in front of attention and feed-forward. Of frozen weights the normed values, 4 bytes each, and
// the router's input in front of its scale, 2, are not kept. Capped logits keep the hyperbolic tangent. In 32 bits
// Gemma 4 norms values, too, 4 bytes of their columns, which are left out, and without experts queries and keys, 12.
// There its attention is Megatron Core's own, which keeps its scores.
const OwnBlocks* own_blocks(std::string_view framework, std::string_view family) {
    static constexpr std::string_view bridge = "megatron-bridge";
    static constexpr std::array rows{
        OwnBlocks{.framework = bridge,
                  .family = "gemma3",
                  .source = "0.6.0 gemma/gemma3_provider.py:157 and 165, common/te_layers.py:26",
                  .norms = 4,
                  .norms_with_experts = 4},
        OwnBlocks{.framework = bridge,
                  .family = "gemma4",
                  .source = "0.6.0 gemma/modeling_gemma4.py:87, 630-706, 744-759, 1324-1388, 1468-1472, 1479 and 1530",
                  .norms = 44,
                  .norms_with_experts = 72,
                  .of_weights = 16,
                  .of_weights_with_experts = 22,
                  .logit = 2,
                  .is_unfused = true}};
    const auto* const found = std::find_if(rows.begin(), rows.end(), [&](const OwnBlocks& row) {
        return row.framework == framework && row.family == family;
    });
    return found == rows.end() ? nullptr : found;
}

}  // namespace pipeweaver::frameworks
