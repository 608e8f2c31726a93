// What files for sharded trainers have in common: those in which every GPU trains the whole model.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/launch/launch.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::emit {

/// Why trainers that are made of Hugging Face's do not run the launch, whoever shares out states; none: they do.
[[nodiscard]] std::optional<std::string> why_not_sharded(const launch::Launch& launch);

/// Why they do not where each GPU has samples of its own; none: they do.
[[nodiscard]] std::optional<std::string> why_not_apart(const launch::Launch& launch);

/// The configuration of LLaMA-Factory below `head`, with its own checkpoints or none.
[[nodiscard]] std::string llama_factory_yaml(const launch::Launch& of, const std::string& head, bool checkpoints);

/// PIPEWEAVER_FLAGS of `swift sft` below `head`, with its own checkpoints or none.
[[nodiscard]] std::string swift_flags(const launch::Launch& of, const std::string& head, bool checkpoints);

}  // namespace pipeweaver::emit
