// Whether the folder of a plan is the plan of one run, whole.
//
// plan.json says the SHA-256 of every other file of its plan, under "files". It is removed before a plan is written
// over an older one, and comes last: a folder without it, or with other files than it says, is of no plan.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace pipeweaver::schedule {

/// SHA-256 of each file, by its path from the plan's folder, with '/'.
using PlanHashes = std::map<std::string, std::string>;

/// SHA-256 of a file's bytes, zipped as they are. Throws Error{io}.
[[nodiscard]] std::string hash_of_file(const std::filesystem::path& path);

/// What plan.json of `folder` says of its files; empty where it says nothing of them, or is not there.
/// Throws Error{input} where it is damaged.
[[nodiscard]] PlanHashes hashes_of_plan(const std::filesystem::path& folder);

/// Checks the files right in `folder`, which is a plan's or lies in one, against the plan.json there or above. Throws
/// Error{input} where the plan was not written to its end, or a file is missing or is another one. A folder that is no
/// plan's passes.
void require_whole(const std::filesystem::path& folder);

}  // namespace pipeweaver::schedule
