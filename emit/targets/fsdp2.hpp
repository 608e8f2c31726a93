// FSDP2 by trainers that are made of Hugging Face's: accelerate.yaml for `accelerate launch`, llama_factory.yaml for
// LLaMA-Factory below it; fsdp.json and swift.sh (an array of flags) for ms-swift.
//
// Sources  accelerate 16cb6eb8 utils/dataclasses.py; transformers 00349ae8 trainer.py (checkpoints are FSDP's or the
//          trainer's, not both); modelscope/ms-swift 3602360a swift/config/fsdp2.json, arguments/sft_args.py;
//          hiyouga/LLaMA-Factory ff6d4d12 hparams/{model,data,finetuning}_args.py, hparams/parser.py.
#pragma once

#include "emit/targets/sharded_files.hpp"

namespace pipeweaver::emit {

/// The rule under which these trainers do not run the launch so, "fsdp2: ..."; none: they do.
[[nodiscard]] std::optional<std::string> why_no_fsdp2(const launch::Launch& launch);

/// Pre: why_no_fsdp2() has nothing to say.
[[nodiscard]] std::vector<FileToWrite> fsdp2_files(const launch::Launch& launch, const std::filesystem::path& out);

}  // namespace pipeweaver::emit
