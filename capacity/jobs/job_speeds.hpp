// How fast a job is on how many GPUs: typed in, or the best rows of a capacity study.
#pragma once

#include "pipeweaver/capacity/jobs.hpp"

#include <filesystem>
#include <vector>

namespace pipeweaver::capacity {

/// That a cluster, a job or a loan may have.
constexpr std::int64_t most_gpus = 1'000'000;

/// By rising GPUs, between the job's min_gpus and max_gpus; at least one. `entry` is a job of the document, which has
/// so many `tokens`. Throws Error{input} with file and key, Error{limit} for a job that would take over 10 years.
[[nodiscard]] std::vector<Speed> speeds_of(const Json& entry, std::int64_t tokens, const std::filesystem::path& folder);

}  // namespace pipeweaver::capacity
