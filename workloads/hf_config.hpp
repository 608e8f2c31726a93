// Models from the config.json that Hugging Face repositories carry.
//
// Read         what the tables in workloads/hf have a row for: language models, encoders and what joins them by
//              model_type, diffusion transformers by _class_name.
// Strict       about what sizes need: a missing, misspelled or impossible value is an error with file and key. Where
//              transformers' own configuration class has a default that nested parts leave out, it is taken, and said
//              in Model::assumed.
// Lenient      about all else: these are files of others, with keys for inference, generation and training.
// Processors   how images become tokens is in the files of image processors beside a config.json (hf/processors.hpp).
// Not in them  what these do not say, and what a model file cannot say: what is taken is said in Model::assumed, the
//              parameters in Model::source.
// Source       configuration_*.py of huggingface/transformers; configuration_internvl_chat.py of OpenGVLab/InternVL;
//              the constructors in src/diffusers/models/transformers of huggingface/diffusers.
#pragma once

#include "pipeweaver/workloads/model.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace pipeweaver::workloads {

/// Reads a configuration file, or config.json in a folder (else in its folder `transformer`); gzip allowed. The model
/// is named after the file, or after its folder where the file is a config.json. Throws Error{input} (what is not read
/// is named with what to start from instead), Error{io}.
[[nodiscard]] Model read_hf_model(const std::filesystem::path& path);

/// Of a configuration whose kind is not read what a model file can begin with (hf/begun.hpp); of others nothing. Throws
/// Error{input}, Error{io}.
[[nodiscard]] std::string begun_hf_model(const std::filesystem::path& path);

/// The model from a document already read, and those of the processors beside it.
[[nodiscard]] Model parse_hf_model(const JsonDocument& document, const std::string& name,
                                   const std::vector<JsonDocument>& processors = {});

}  // namespace pipeweaver::workloads
