// A schedule, and a solution file: a schedule with what is claimed of it.
#pragma once

#include "pipeweaver/schedule/problem.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::schedule {

/// An order of tasks for each rank and a memory mode for each pair.
struct Schedule {
    std::vector<std::vector<TaskId>> order;  ///< per rank
    std::vector<std::uint32_t> mode;         ///< per pair; index into Pair::modes

    friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// Why a search ended: its schedule is proven optimal; more rounds would gain little; all rounds that were asked for
/// were run; its time was over; whoever asked for it ended it.
enum class StopReason { optimal, no_gain, rounds, budget, stopped };

/// "optimal", "no_gain", "rounds", "budget" or "stopped".
[[nodiscard]] std::string_view name_of(StopReason reason);

/// A solution file ("pipeweaver-solution/1"). Only `problem`, `schedule.order` and, where the problem has pairs,
/// `schedule.mode` must be in a file; the rest is optional for a reader and always written.
struct Solution {
    std::string problem;  ///< its name
    std::string problem_sha256;
    Schedule schedule;
    std::vector<Duration> start;  ///< per task
    Duration makespan{};
    std::optional<Duration> lower_bound;
    std::vector<Bytes> peak;  ///< per rank, base included
    std::string strategy;
    StopReason stop_reason = StopReason::rounds;
    std::uint64_t rounds = 0;
    std::uint64_t evaluations = 0;
};

/// A 64-bit fingerprint of (order, mode, makespan) as 16 hex digits: one look says whether two results are the same.
[[nodiscard]] std::string signature(const Schedule& schedule, Duration makespan);

/// Reads the schedule of a solution file for `file.problem`, gzip allowed.
/// Throws Error{input} if it is malformed, for another problem (name or SHA-256), or no schedule of this problem: a
/// task missing, twice, unknown or on a wrong rank, a mode that does not exist. Whether it can run is replay()'s
/// answer.
[[nodiscard]] Schedule read_schedule(const std::filesystem::path& path, const ProblemFile& file);

/// Reads a schedule from text already read; `name` stands for the file in errors.
[[nodiscard]] Schedule parse_schedule(std::string name, std::string_view text, const ProblemFile& file);

/// The solution as a file's content, keys in fixed order, ends with a newline.
[[nodiscard]] std::string to_json(const Solution& solution);

}  // namespace pipeweaver::schedule
