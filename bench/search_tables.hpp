// What `bench search` says of the problems it searched: each by itself, and medians and worsts by class.
#pragma once

#include "bench/searched_problem.hpp"

#include <nlohmann/json_fwd.hpp>

#include <vector>

namespace pipeweaver::bench {

/// Tables for people, on stdout.
void print_tables(const std::vector<SearchedProblem>& problems);

/// {"instances": [...], "classes": [...]}.
[[nodiscard]] nlohmann::ordered_json tables_json(const std::vector<SearchedProblem>& problems);

}  // namespace pipeweaver::bench
