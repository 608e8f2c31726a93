// How images become tokens: by the files of image processors where there are any, else by the rules of the model cards,
// which is then noted in Reading::assumed. Rows of joined.cpp name these functions.
#pragma once

#include "workloads/hf/joining.hpp"

namespace pipeweaver::workloads::hf {

void images_native(const Towers& towers, Model& model);      ///< keep their size between two numbers of pixels
void images_frames(const Towers& towers, Model& model);      ///< the same, the pixels of all frames of a patch (GLM-4V)
void images_limited(const Towers& towers, Model& model);     ///< keep it up to in_token_limit patches (Kimi-VL)
void images_up_to_side(const Towers& towers, Model& model);  ///< keep it up to image_size a side
void images_few(const Towers& towers, Model& model);         ///< keep it up to 280 tokens (Gemma 4)
/// Are one tile of image_size; up to it with an encoder of native ones.
void images_square(const Towers& towers, Model& model);
void images_slices(const Towers& towers, Model& model);  ///< the file's image_size (MiniCPM-V)
void images_crops(const Towers& towers, Model& model);   ///< the encoder's, rounded up to whole tokens (Molmo 2)
void images_tiled(const Towers& towers, Model& model);   ///< are max_num_tiles tiles (Llama 3.2 vision)

}  // namespace pipeweaver::workloads::hf
