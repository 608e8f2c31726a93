// Blocks of language models that a framework writes itself, and what they keep for their backwards beside what
// docs/memory.md has. Data: a row is a family of models in a framework.
//
// Units        bytes a value: of the hidden size and a position, or of a logit.
// Determinism  Tables alone.
#pragma once

#include <cstdint>
#include <string_view>

namespace pipeweaver::frameworks {

struct OwnBlocks {
    std::string_view framework;
    std::string_view family;  ///< model_type of its Hugging Face configuration
    std::string_view source;
    std::int64_t norms = 0;               ///< of a block without experts, by norms that it adds or has in 32 bits
    std::int64_t norms_with_experts = 0;  ///< of a block with experts
    std::int64_t of_weights = 0;          ///< of `norms` what gradients of their weights alone need
    std::int64_t of_weights_with_experts = 0;
    std::int64_t logit = 0;   ///< of a logit that is capped
    bool is_unfused = false;  ///< without experts: its attention keeps its scores
};

/// Null: its blocks are Megatron Core's. Either may be empty.
[[nodiscard]] const OwnBlocks* own_blocks(std::string_view framework, std::string_view family);

}  // namespace pipeweaver::frameworks
