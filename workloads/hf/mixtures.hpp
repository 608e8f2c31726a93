// Experts and attention of language models whose configurations say them in a way of their own.
#pragma once

#include "workloads/hf/decoders.hpp"

namespace pipeweaver::workloads::hf {

/// Experts of text and others of images, a number and a width each (ERNIE 4.5 VL): of their mean width.
void ernie_blocks(const Part& part, const DecoderRow& row, Architecture& a);

/// Factored attention, and the layers of experts as a text (Step-3).
void step_blocks(const Part& part, const DecoderRow& row, Architecture& a);

}  // namespace pipeweaver::workloads::hf
