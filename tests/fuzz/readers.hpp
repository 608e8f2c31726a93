// The readers of what users and callers hand in, for fuzzers and for the test that reads the corpora.
#pragma once

#include <map>
#include <string_view>

namespace pipeweaver::fuzz {

/// Takes the bytes or throws Error; anything else is a fault.
using Reader = void (*)(std::string_view);

/// By names: batch, problem, solution, partition, recipe, model, cluster, configuration, how; request is ask().
[[nodiscard]] const std::map<std::string_view, Reader>& readers();

}  // namespace pipeweaver::fuzz
