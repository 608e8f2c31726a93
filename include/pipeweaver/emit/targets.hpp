// Targets that a schedule, or the way in which a rung is launched, is emitted for: a table. A new one is a file of
// functions in emit/targets/ and a row in targets.cpp; the plan's folder, `emit` and `list targets` go by the rows.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/emit/actions.hpp"
#include "pipeweaver/launch/launch.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::emit {

/// The folder below a replica's in which the lists of each rank alone lie.
inline constexpr const char* rank_lists_folder = "actions";

/// A schedule as a target is handed it.
struct ToEmit {
    const schedule::Problem& problem;
    const schedule::Schedule& schedule;
    const ActionLists* actions = nullptr;  ///< null: none are known beyond what the two tell
    std::filesystem::path folder{};        ///< where they lie, for errors
    bool by_rank = false;                  ///< action lists of each rank alone
    /// How long the optimizer takes after the replica's step; none: it is no replica of a plan.
    std::optional<Duration> optimizer{};
};

/// What was written for a target that has a schedule of its own.
struct WrittenFiles {
    std::filesystem::path folder;  ///< of its files
    std::size_t microbatches = 0;
    bool padding = false;      ///< padding.json lies beside them
    bool first_alone = false;  ///< there are several replicas, and the files are for replica 0
};

struct Target {
    std::string name;
    std::string about;
    std::string of = "free";  ///< of planner::targets(): whose schedule it writes; "free": that of every replica

    bool is_trace = false;  ///< for eyes: of many replicas a plan writes only that of the slowest

    std::vector<std::string> files{};  ///< names of what write() writes

    /// Says why the target cannot express the schedule, with rule and task; none: it can.
    std::optional<std::string> (*check)(const ToEmit& from) = nullptr;

    /// Makes the target's files below `out`. Pre: check() found nothing.
    std::vector<FileToWrite> (*write)(const ToEmit& from, const std::filesystem::path& out) = nullptr;

    // Of a row that writes how flags launch a rung: `of` is the planner's target whose users launch it so, and check
    // and write are null.
    std::string title{};   ///< what reports call it: "Megatron-LM"
    std::string folder{};  ///< of a plan, in which its files lie
    /// Says why the target cannot launch it, with the rule; none: it can.
    std::optional<std::string> (*check_launch)(const launch::Launch& launch) = nullptr;
    /// Makes the target's files below `out`. Pre: check_launch() found nothing.
    std::vector<FileToWrite> (*write_launch)(const launch::Launch& launch, const std::filesystem::path& out) = nullptr;

    bool is_launched() const { return write_launch != nullptr; }

    /// Says how the target's files are run, a line each, for a person; null: their names say it.
    std::vector<std::string> (*how_to_run)(const WrittenFiles& written) = nullptr;
};

/// Gives all targets: torch-csv, torch-actions, chrome-trace, megatron, megatron-mimo, torchtitan, fsdp2, deepspeed,
/// llama-factory.
[[nodiscard]] const std::vector<Target>& targets();

}  // namespace pipeweaver::emit
