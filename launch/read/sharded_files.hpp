// Files that a launch names, as settings.
#pragma once

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/launch/said.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::launch {

/// The file that `named` is for a launch that is read from `from`: as it is named, beside that, or in the folders above
/// it; none: there is none.
[[nodiscard]] std::optional<std::filesystem::path> file_named(const std::string& named, const std::string& from);

/// That file's document, or the one that the launch's script writes under this name. Throws Error{io}, Error{input}.
[[nodiscard]] std::optional<JsonDocument> document_named(const std::string& named, const SaidLaunch& said);

/// All that is plain in a document: "train.micro_batch_size" of what lies in sections, `prefix` in front.
[[nodiscard]] std::vector<Setting> flattened(const Json& root, const std::string& prefix, const std::string& where);

}  // namespace pipeweaver::launch
