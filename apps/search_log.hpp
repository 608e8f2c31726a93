// solve --log: what a search found, and when in rounds. No times, so that the logs of two runs can be compared.
#pragma once

#include "pipeweaver/search/search.hpp"

#include <string>

namespace pipeweaver::apps {

/// The file: a heading, and a line for every round after which the best or the bound was better.
[[nodiscard]] std::string search_log(const search::Found& found);

}  // namespace pipeweaver::apps
