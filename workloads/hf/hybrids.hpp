// Blocks of hybrids, as their configurations say them: Mamba-2 and delta attention beside full attention.
#pragma once

#include "workloads/hf/decoders.hpp"

namespace pipeweaver::workloads::hf {

void nemotron_blocks(const Part& part, const DecoderRow& row, Architecture& a);  ///< a letter each (Nemotron-H)
void falcon_blocks(const Part& part, const DecoderRow& row, Architecture& a);    ///< side by side (Falcon-H1)
void kimi_blocks(const Part& part, const DecoderRow& row, Architecture& a);      ///< linear_attn_config (Kimi Linear)

}  // namespace pipeweaver::workloads::hf
