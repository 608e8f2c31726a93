// Targets by name, from files: what `pipeweaver emit` does.
#pragma once

#include "pipeweaver/base/files.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emit {

struct Target {
    std::string name;
    std::string about;
};

/// torch-csv, torch-actions, chrome-trace.
[[nodiscard]] const std::vector<Target>& targets();

/// The target's files below `out`. `source` is a plan folder (torch-csv takes its torch/, the others its replicas) or a
/// folder with problem.json[.gz] and solution.json. Throws Error{input} for an unknown target (the nearest is named) or
/// damaged files, Error{io} for missing ones, Error{limit} with rule and task for what the target cannot express.
[[nodiscard]] std::vector<FileToWrite> emit(const std::filesystem::path& source, std::string_view target,
                                            const std::filesystem::path& out);

}  // namespace pipeweaver::emit
