// Why a rank does what it does at some time, what a task waits for, and what would shorten that.
//
//   rank 0  | F0 F1 F2 .........B0 |      asked for rank 0 at any '.': it waits for B0, which needs B1 of rank 1,
//   rank 1  | ...F0 F1 F2 B1       |      which stands behind F2 there, and so on back to the step's begin
//
// Chain        each task with what it began behind. Tasks and lags fill the time from 0 to the start of the chain's
//              first task without a gap.
// Changes      are replayed in the order that the schedule has: other orders and other memory modes are not searched.
// Units        Duration from the step's begin.
// Determinism  functions of their arguments.
#pragma once

#include "pipeweaver/schedule/critical_path.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace pipeweaver::schedule {

struct Instant {
    RankId rank{};
    Duration time{};
};

/// At most one of them; neither: what decides the makespan.
struct Query {
    std::optional<Instant> at{};
    std::optional<TaskId> task{};
};

enum class Activity : std::uint8_t {
    runs,
    waits,
    ends,    ///< does what follows its last task
    is_done  ///< others are not
};

/// "runs", "waits", "ends" or "is done".
[[nodiscard]] std::string_view name_of(Activity doing);

/// What a rank does at the time that was asked.
struct RankState {
    Activity doing = Activity::runs;
    Duration from{}, to{};
    std::optional<TaskId> task;  ///< that runs, or that it waits to begin; none: it has no task left
};

struct ChainLink {
    TaskId task{};
    std::optional<Cause> cause;  ///< of the next link; none: the task begins the step
};

/// Something that is a tenth shorter: a task, all tasks of a module's pass. Or a transfer that takes no time.
enum class Changed : std::uint8_t { task, pass, transfer };

struct Shortening {
    Changed changed = Changed::task;
    TaskId task{};               ///< itself; one of the pass; the one to which the transfer leads
    std::optional<TaskId> from;  ///< of a transfer
    Duration makespan{};         ///< then
    Duration shorter{};          ///< the makespan; >= 0
    Duration earlier{};          ///< the task that was asked about begins; 0 where none was
};

/// A rank waits before `task`.
struct RankWait {
    Duration from{}, to{};
    TaskId task{};
    Cause cause;
};

struct RankWaits {
    Duration total{};  ///< before and between its tasks
    Duration done{};   ///< after the last one and what follows it, while others are not done
    std::vector<RankWait> longest;
};

struct Explanation {
    Timeline times;
    std::optional<RankState> state;      ///< of a question with a time
    std::optional<TaskId> about;         ///< the task whose begin is explained; none: the makespan is
    std::vector<ChainLink> chain;        ///< the last task first
    Duration tail{};                     ///< of a makespan: what follows the chain's first task on its rank
    std::vector<Shortening> shortening;  ///< what shortens most first, by kind; the task that was asked about always
    std::vector<RankWaits> waits;        ///< by rank
};

/// How much shorter a task or a pass is made: by one part in so many.
inline constexpr std::int64_t shortened_by = 10;

/// Pre: the schedule's replay on `replayer` completes; rank and task that are asked about exist. A time before 0 is 0.
/// Time O((tasks + edges) * a hundred).
[[nodiscard]] Explanation explain(const Replayer& replayer, const Schedule& schedule, const Query& asked);

}  // namespace pipeweaver::schedule
