// Targets that a schedule is emitted for: a table. A new one is a file of functions in emit/targets/ and a row in
// targets.cpp; the plan's folder, `emit` and `list targets` go by the rows.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/emit/actions.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::emit {

/// Below a replica's folder: where the lists of each rank alone lie.
inline constexpr const char* rank_lists_folder = "actions";

/// A schedule as a target is handed it.
struct ToEmit {
    const schedule::Problem& problem;
    const schedule::Schedule& schedule;
    const ActionLists* actions = nullptr;  ///< null: none are known beyond what the two tell
    std::filesystem::path folder{};        ///< where they lie, for errors
    bool by_rank = false;                  ///< action lists of each rank alone
};

struct Target {
    std::string name;
    std::string about;
    std::string of = "free";  ///< of planner::targets(): whose schedule it writes; "free": that of every replica

    bool is_trace = false;  ///< for eyes: of many replicas a plan writes only that of the slowest

    std::vector<std::string> files{};  ///< names of what write() writes

    /// Why it cannot express the schedule, with rule and task; none: it can.
    std::optional<std::string> (*check)(const ToEmit& from) = nullptr;

    /// Its files below `out`. Pre: check() found nothing.
    std::vector<FileToWrite> (*write)(const ToEmit& from, const std::filesystem::path& out) = nullptr;
};

/// torch-csv, torch-actions, chrome-trace.
[[nodiscard]] const std::vector<Target>& targets();

}  // namespace pipeweaver::emit
