// Models from the config.json that Hugging Face repositories carry.
//
// Read         model_type llama, qwen2, qwen3, qwen2_vl, qwen2_5_vl, internvl_chat (OpenGVLab's files, with a language
//              model of type qwen2, llama or internlm2) and internvl (the same in transformers' own form).
// Strict       about what sizes need: a missing or impossible value is an error with file and key. Where transformers'
//              own configuration class has a default (num_key_value_heads, head_dim, tie_word_embeddings, ...), a
//              missing or null key has that default.
// Lenient      about all else: these are files of others, with keys for inference, generation and training.
// Not in them  how images become tokens (that is in the preprocessor's file): what is taken is said in Model::assumed.
// Source       configuration_*.py of huggingface/transformers; configuration_internvl_chat.py of OpenGVLab/InternVL.
#pragma once

#include "pipeweaver/workloads/model.hpp"

#include <filesystem>
#include <string>

namespace pipeweaver::workloads {

/// Reads a configuration file, or config.json in a folder; gzip allowed. The model is named after the file, or after
/// its folder where the file is a config.json. Throws Error{input} (a kind that is not read is named with what is
/// missing for it), Error{io}.
[[nodiscard]] Model read_hf_model(const std::filesystem::path& path);

/// The same from a document already read.
[[nodiscard]] Model parse_hf_model(const JsonDocument& document, const std::string& name);

}  // namespace pipeweaver::workloads
