// How videos become tokens: by the file of the video processor where there is one, else by what its class or the
// released files say, which is then noted in Reading::assumed. Rows of joined.cpp name these functions.
#pragma once

#include "workloads/hf/joining.hpp"

namespace pipeweaver::workloads::hf {

void videos_by_frame(const Towers& towers, Model& model);  ///< each frame keeps its size between two numbers of pixels
                                                           ///< (Qwen2-VL, Qwen2.5-VL)
void videos_by_clip(const Towers& towers, Model& model);   ///< the same of all frames together (Qwen3-VL)

}  // namespace pipeweaver::workloads::hf
