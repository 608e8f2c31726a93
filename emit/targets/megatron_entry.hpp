// The script of Megatron-LM that trains a model.
//
// Source       Megatron-LM of August 2026: pretrain_gpt.py, examples/multimodal/config.py and model.py;
//              Megatron-Bridge: recipes.
#pragma once

#include "pipeweaver/launch/launch.hpp"

#include <string>

namespace pipeweaver::emit {

/// Lines of a shell script: PIPEWEAVER_ENTRY with what it wants, or comments that say why no script of Megatron-LM
/// builds the model and what does.
[[nodiscard]] std::string megatron_entry(const launch::Launch& of);

}  // namespace pipeweaver::emit
