// What decides when a task of a schedule begins: the task before it on its rank, or one that it needs.
//
// Units        Nanoseconds, from the step's begin.
// Determinism  functions of their arguments.
#pragma once

#include "pipeweaver/schedule/replay.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::schedule {

/// What a task began behind: at once after `task` of its own rank, or `lag` after the end of a task that it needs.
struct Cause {
    TaskId task{};
    Duration lag{};
    bool is_before_it = false;  ///< it stands right before it on the same rank, and nothing came later

    friend bool operator==(const Cause&, const Cause&) = default;
};

/// When each task runs, by task.
struct TaskTimes {
    std::span<const std::int64_t> start_ns, end_ns;
};

/// Why tasks begin when they do. Keeps a reference to the replayer.
class Causes {
public:
    Causes(const Replayer& replayer, const Schedule& schedule);

    /// The task right before it on its rank; none: it is the first.
    [[nodiscard]] std::optional<TaskId> before(TaskId task) const { return before_[index(task)]; }

    /// None: nothing ended just then, as at the step's begin. Where several did, the task before it on its rank is
    /// named, else the first that it needs.
    [[nodiscard]] std::optional<Cause> of(TaskId task, const TaskTimes& times) const;

private:
    const Replayer* replayer_;
    std::vector<std::optional<TaskId>> before_;
};

/// A schedule's times.
struct Timeline {
    std::vector<std::int64_t> start_ns, end_ns;  ///< by task
    std::vector<std::int64_t> slack_ns;          ///< by task: by how much it may end later while the makespan stays
    Duration makespan{};

    [[nodiscard]] TaskTimes times() const { return {start_ns, end_ns}; }
};

/// Pre: the schedule's replay on `replayer` completes. Time O(edges + tasks log tasks).
[[nodiscard]] Timeline timeline_of(const Replayer& replayer, const Schedule& schedule);

}  // namespace pipeweaver::schedule
