// What files of launches have in common, and what each target of them has for its row in targets(): why it cannot
// launch so (none: it can), and the files below `out` (pre: nothing was said against it).
#pragma once

#include "pipeweaver/emit/targets.hpp"
#include "pipeweaver/launch/launch.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emit {

/// "# text": one line, whatever a name holds.
[[nodiscard]] std::string comment(const std::string& text);

/// What a module is, as in Launch::kinds; `usual` where the launch does not say it.
[[nodiscard]] std::string kind_of(const launch::Launch& of, const std::string& module, std::string_view usual);

/// Comments that say `what` this is, of which job and rung, and what our emulation says of it.
[[nodiscard]] std::string launch_head(const launch::Launch& of, std::string_view what);

/// Lines of a script that have the allocator's segments expand. Pre: microbatches have several shapes.
[[nodiscard]] std::string expanding_segments(const launch::Launch& of);

// megatron.cpp; why not is launch::why_no_megatron().

[[nodiscard]] std::vector<FileToWrite> megatron_files(const launch::Launch& launch, const std::filesystem::path& out);

// torchtitan.cpp

[[nodiscard]] std::optional<std::string> why_no_torchtitan(const launch::Launch& launch);
[[nodiscard]] std::vector<FileToWrite> torchtitan_files(const launch::Launch& launch, const std::filesystem::path& out);

// sharded.cpp

[[nodiscard]] std::optional<std::string> why_no_fsdp2(const launch::Launch& launch);
[[nodiscard]] std::vector<FileToWrite> fsdp2_files(const launch::Launch& launch, const std::filesystem::path& out);

[[nodiscard]] std::optional<std::string> why_no_deepspeed(const launch::Launch& launch);
[[nodiscard]] std::vector<FileToWrite> deepspeed_files(const launch::Launch& launch, const std::filesystem::path& out);

[[nodiscard]] std::optional<std::string> why_no_llama_factory(const launch::Launch& launch);
[[nodiscard]] std::vector<FileToWrite> llama_factory_files(const launch::Launch& launch,
                                                           const std::filesystem::path& out);

}  // namespace pipeweaver::emit
