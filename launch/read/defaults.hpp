// What an entry sets where nobody says it.
#pragma once

#include "pipeweaver/launch/said.hpp"

#include <vector>

namespace pipeweaver::launch {

/// The settings in the words of their dialect, behind the values that the entry gives what is not said.
[[nodiscard]] std::vector<Setting> with_defaults(const SaidLaunch& said);

}  // namespace pipeweaver::launch
