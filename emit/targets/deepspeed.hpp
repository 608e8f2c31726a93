// DeepSpeed by trainers that are made of Hugging Face's: deepspeed.json, with swift.sh (an array of flags) for ms-swift
// and llama_factory.yaml for LLaMA-Factory. GPUs of ms-swift may share samples, by heads as far as there are keys for
// all (its sequence_parallel/sequence_parallel.py).
//
// Sources  deepspeedai/DeepSpeed 0.19.6 (edaa7221) runtime/zero/config.py; modelscope/ms-swift 3602360a
//          swift/config/zero3.json; hiyouga/LLaMA-Factory ff6d4d12 examples/deepspeed/ds_z3_config.json.
#pragma once

#include "emit/targets/sharded_files.hpp"

namespace pipeweaver::emit {

/// The rule under which these trainers do not run the launch so, "deepspeed: ..."; none: they do.
[[nodiscard]] std::optional<std::string> why_no_deepspeed(const launch::Launch& launch);

/// Pre: why_no_deepspeed() has nothing to say.
[[nodiscard]] std::vector<FileToWrite> deepspeed_files(const launch::Launch& launch, const std::filesystem::path& out);

/// The same for LLaMA-Factory, which takes that deepspeed.json.
[[nodiscard]] std::optional<std::string> why_no_llama_factory(const launch::Launch& launch);
[[nodiscard]] std::vector<FileToWrite> llama_factory_files(const launch::Launch& launch,
                                                           const std::filesystem::path& out);

}  // namespace pipeweaver::emit
