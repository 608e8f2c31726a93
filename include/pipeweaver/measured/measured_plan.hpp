// A plan's folder as that of what was run.
#pragma once

#include "pipeweaver/measured/run.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pipeweaver::measured {

/// The folder that holds the schedule of a replica: replica-NNN of a plan, or the folder itself, which then is of
/// replica 0. Throws Error{input} where there is no such replica.
[[nodiscard]] std::filesystem::path schedule_folder(const std::filesystem::path& folder, std::int64_t replica);

/// Throws Error{input} where the plan's partition.json is of another model than --model names, or of that model before
/// it was changed; Error{io} where the folder has no such file.
void require_model(const std::filesystem::path& folder, const std::string& model);

/// Reads and joins the recordings of all ranks. Throws as read_recording() and join().
[[nodiscard]] Run read_run(const Planned& planned, const std::vector<std::string>& files);

}  // namespace pipeweaver::measured
