// A problem as a file beside the solution that names its SHA-256.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/search/search.hpp"

#include <filesystem>
#include <vector>

namespace pipeweaver::emit {

/// Adds problem.json.gz and solution.json below `folder`. Pre: found.schedule.
void add_pair(std::vector<FileToWrite>& files, const std::filesystem::path& folder, const schedule::Problem& problem,
              const search::Found& found);

}  // namespace pipeweaver::emit
