// What a person does with the files that a command wrote.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace pipeweaver::apps {

/// Lines that say, for what is among the written `files`, where it lies below `out` and how it is opened or loaded; the way into
/// PyTorch comes first if the plan was made for it.
[[nodiscard]] std::string next_steps(const std::vector<std::filesystem::path>& files, const std::filesystem::path& out,
                                     bool for_torch);

}  // namespace pipeweaver::apps
