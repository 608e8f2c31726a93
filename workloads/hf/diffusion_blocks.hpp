// Blocks and embedders of further diffusion transformers: functions of diffusers.cpp's rows.
#pragma once

#include "pipeweaver/workloads/model.hpp"
#include "workloads/hf/part.hpp"

namespace pipeweaver::workloads::hf {

void wan_blocks(const Part& part, Architecture& a);
void flux_blocks(const Part& part, Architecture& a);
[[nodiscard]] std::int64_t wan_embedders(const Part& part, const Architecture& a);

void wan_control_blocks(const Part& part, Architecture& a);  ///< and those of VACE
[[nodiscard]] std::int64_t wan_control_embedders(const Part& part, const Architecture& a);
void wan_animate_blocks(const Part& part, Architecture& a);
[[nodiscard]] std::int64_t wan_animate_embedders(const Part& part, const Architecture& a);
void ltx_blocks(const Part& part, Architecture& a);
void ltx2_blocks(const Part& part, Architecture& a);  ///< with a narrow stream of audio
void pixart_blocks(const Part& part, Architecture& a);
void sana_blocks(const Part& part, Architecture& a);
/// Of models that share a modulation and project captions: LTX, PixArt, Sana.
[[nodiscard]] std::int64_t ltx_embedders(const Part& part, const Architecture& a);
void mochi_blocks(const Part& part, Architecture& a);
[[nodiscard]] std::int64_t mochi_embedders(const Part& part, const Architecture& a);
void cosmos_blocks(const Part& part, Architecture& a);
[[nodiscard]] std::int64_t cosmos_embedders(const Part& part, const Architecture& a);
void kandinsky_blocks(const Part& part, Architecture& a);
[[nodiscard]] std::int64_t kandinsky_embedders(const Part& part, const Architecture& a);
void lumina_blocks(const Part& part, Architecture& a);
void z_image_blocks(const Part& part, Architecture& a);
/// Of models that refine text and latents by blocks of their own in front: Lumina 2, Z-Image.
[[nodiscard]] std::int64_t refined_embedders(const Part& part, const Architecture& a);
void chroma_blocks(const Part& part, Architecture& a);
[[nodiscard]] std::int64_t chroma_embedders(const Part& part, const Architecture& a);

/// Heads of a file that says the width: their number, or their size as axes_dims add up to it.
[[nodiscard]] std::int64_t heads_of_width(const Part& part);

}  // namespace pipeweaver::workloads::hf
