// Clips as processors of vision-language models read them: some of their frames, at a size of so many pixels.
//
// Source  huggingface/transformers: sample_frames() and smart_resize() of
//         src/transformers/models/qwen2_vl/video_processing_qwen2_vl.py:134,197 (commit 000513e6; Qwen2-VL, Qwen2.5-VL)
//         and src/transformers/models/qwen3_vl/video_processing_qwen3_vl.py:63,121 (commit 04e7e5e6; Qwen3-VL),
//         image_processing_qwen2_vl.py smart_resize().
#pragma once

#include "workloads/items.hpp"

namespace pipeweaver::workloads {

/// Tokens of a clip: `groups` of frames that the encoder reads each for itself, of width x height tokens each.
struct ClipGrid {
    std::int64_t groups = 1, width = 1, height = 1;

    std::int64_t tokens() const { return groups * width * height; }
};

/// Pre: the clip's width and height are known.
[[nodiscard]] ClipGrid sampled(const SampledClips& rule, const Clip& clip);

}  // namespace pipeweaver::workloads
