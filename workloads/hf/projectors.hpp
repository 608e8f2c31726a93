// How encoders are joined to language models: what makes one token of several patches, and the projector between them.
// Rows of joined.cpp name them.
#pragma once

#include "workloads/hf/joining.hpp"

namespace pipeweaver::workloads::hf {

// Patches of a side that make one token.
[[nodiscard]] std::int64_t merge_one(const Towers& towers);
[[nodiscard]] std::int64_t merge_spatial(const Towers& towers);      ///< spatial_merge_size, of the encoder or the file
[[nodiscard]] std::int64_t merge_kernel(const Towers& towers);       ///< merge_kernel_size: [2, 2]
[[nodiscard]] std::int64_t merge_shuffle(const Towers& towers);      ///< downsample_ratio, pixel_shuffle_ratio: 0.5
[[nodiscard]] std::int64_t merge_scale(const Towers& towers);        ///< scale_factor
[[nodiscard]] std::int64_t merge_pooled(const Towers& towers);       ///< mm_tokens_per_image
[[nodiscard]] std::int64_t merge_pooling(const Towers& towers);      ///< pooling_kernel_size
[[nodiscard]] std::int64_t merge_tiles(const Towers& towers);        ///< one token for all tiles (Llama 3.2 vision)
[[nodiscard]] std::int64_t merge_downsampled(const Towers& towers);  ///< downsample_factor
[[nodiscard]] std::int64_t merge_queries(const Towers& towers);      ///< query_num of each image (MiniCPM-V)
[[nodiscard]] std::int64_t merge_pairs(const Towers& towers);        ///< 2 x 2, pooled by an attention (Molmo 2)
[[nodiscard]] std::int64_t merge_convolved(const Towers& towers);    ///< a convolution of 2 x 2 (GLM-4V)
[[nodiscard]] std::int64_t merge_strides(const Towers& towers);      ///< convolutions of a stride each (Step-3)

// Widths: v the encoder's, t the language model's, m the patches of a token.
[[nodiscard]] ModelEdge project_merged(const Towers& towers);  ///< m v, m v, t; deepstack_visual_indexes: further ones
[[nodiscard]] ModelEdge project_shuffled(const Towers& towers);  ///< m v, t, t
[[nodiscard]] ModelEdge project_twice(const Towers& towers);     ///< v, t, t
[[nodiscard]] ModelEdge project_once(const Towers& towers);      ///< v, t
[[nodiscard]] ModelEdge project_joined(const Towers& towers);    ///< m v, t
[[nodiscard]] ModelEdge project_mistral(const Towers& towers);   ///< m v, v, t, t
[[nodiscard]] ModelEdge project_glm(const Towers& towers);       ///< m v, o, o, gated merger, with o = out_hidden_size
[[nodiscard]] ModelEdge project_chatglm(const Towers& towers);   ///< m v, t, t, gated feed-forward
[[nodiscard]] ModelEdge project_llama4(const Towers& towers);    ///< m v, projector's widths, t
[[nodiscard]] ModelEdge project_mllama(const Towers& towers);    ///< vision_output_dim, t
[[nodiscard]] ModelEdge project_aligned(const Towers& towers);   ///< m v, alignment_intermediate_size, its half, t
[[nodiscard]] ModelEdge project_expanded(const Towers& towers);  ///< m v, projector_hidden_size, t
[[nodiscard]] ModelEdge project_visual_words(const Towers& towers);  ///< m v, visual_vocab_size, t
[[nodiscard]] ModelEdge project_pooled(const Towers& towers);        ///< adapter_config: attention and feed-forward
[[nodiscard]] ModelEdge project_strides(const Towers& towers);       ///< 2 x 2 and 3 x 3 patches to o, 2 o; 2 o, t
[[nodiscard]] ModelEdge project_doubled(const Towers& towers);       ///< two of 3 x 3 patches, v, 2 v, 4 v; 4 v, t
[[nodiscard]] ModelEdge project_frames(const Towers& towers);        ///< m v, m v; 2 m v, m v, m v; m v, t (ERNIE)
[[nodiscard]] ModelEdge project_resampled(const Towers& towers);     ///< v, t, attention of queries, t

/// The encoder's blocks up to the last that adapter_config reads.
void kept_layers(Towers& towers);

/// Of MiniCPM-V's files, which say the release alone.
[[nodiscard]] std::string_view minicpm_text(const Part& file);

}  // namespace pipeweaver::workloads::hf
