// Finds a schedule of small makespan within every rank's memory, and says how far from optimal it can be at most.
//
// Threads      work runs on the caller's Executor.
// Determinism  (problem, options) decide the result, whatever the executor. Time decides only how many rounds are run:
//              `max_rounds` with the number a stopped search reports gives its result again.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/schedule/replay.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::search {

/// Rules of a target framework that a schedule must keep beyond the problem's own.
struct Rules {
    /// Per rank: tasks that must run in this relative order (PyTorch: the last stage's forwards, microbatch 0 first).
    std::vector<std::vector<TaskId>> fixed_order;
};

/// Which schedules to hand over beside the best.
struct NearWanted {
    std::size_t most = 0;  ///< so many; 0: none
    double within = 0;     ///< with a makespan at most so much longer than the best, as a part of it
};

struct Options {
    std::string strategy = "default";
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> max_rounds;  ///< the reproducible budget; nothing: until `keep_going` says no
    Rules rules;
    std::vector<schedule::Schedule> starts;  ///< schedules to begin with; those that do not run are passed over
    NearWanted near;                         ///< changes nothing of the search
};

/// What a caller may show while the search runs.
struct Progress {
    std::uint64_t rounds = 0;
    std::uint64_t evaluations = 0;
    Duration best{};
    Duration bound{};
    std::string_view found_by;
};

/// A schedule and what found it.
struct Known {
    schedule::Schedule schedule;
    Duration makespan{};
    std::string strategy;
};

/// A round after which the best or the bound was better than ever before.
struct Improvement {
    std::uint64_t rounds = 0;
    std::uint64_t evaluations = 0;
    Duration best{};
    Duration bound{};
    std::string found_by;
};

struct Found {
    std::optional<schedule::Schedule> schedule;  ///< nothing: no schedule that fits was found
    std::string why_not;                         ///< then: which rank, how many bytes
    schedule::Replay replay;                     ///< of `schedule`
    Duration bound{};
    std::string bound_name;
    std::string strategy;  ///< what found the schedule
    schedule::StopReason stop_reason = schedule::StopReason::rounds;
    std::uint64_t rounds = 0;
    std::uint64_t evaluations = 0;
    std::optional<Known> first;        ///< the best of the starts: what the search began with
    std::vector<Improvement> history;  ///< how it went, round by round; ends with `schedule`
    /// What Options::near asked for, as far as the search came by it: other schedules than `schedule`, each another
    /// order or other modes, smallest makespan first. They keep memory and rules, too. The strategy dip has none.
    std::vector<Known> near;
};

struct Strategy {
    std::string name;
    std::string about;
};
[[nodiscard]] const std::vector<Strategy>& strategies();

/// Why a search must end; nothing: go on.
using KeepGoing = std::function<std::optional<schedule::StopReason>(const Progress&)>;

/// Rounds of a search that has neither `max_rounds` nor `keep_going`.
inline constexpr std::uint64_t default_rounds = 200;

/// Problems of more tasks get the best of the starts and no rounds: a round would take seconds.
inline constexpr std::uint32_t most_tasks_in_rounds = 50'000;

/// Searches. `keep_going` is asked from the calling thread between rounds (a round lasts about 10 ms at most).
/// Throws Error{input} for an unknown strategy, naming the nearest. Without `max_rounds` and `keep_going` it ends after
/// `default_rounds`. Found.rounds counts from after the starts (given ones, policies, list schedules), which are always
/// tried: 0 rounds give the best of them. Throws Error{input} for rules that contradict the problem.
[[nodiscard]] Found solve(const schedule::Replayer& replayer, const Options& options, const Executor& execute,
                          const KeepGoing& keep_going = {});

/// The solution file of what was found. Pre: found.schedule.
[[nodiscard]] schedule::Solution solution(const Found& found, const schedule::Problem& problem, std::string sha256);

}  // namespace pipeweaver::search
