// What a queue is played on: GPUs on loan, the jobs that have arrived and are not done at one moment, and how that
// moment moves on.
#pragma once

#include "pipeweaver/capacity/jobs.hpp"

#include <optional>
#include <span>
#include <vector>

namespace pipeweaver::capacity {

/// GPUs on loan over the hours of a day, every day alike.
class LoanTimes {
public:
    explicit LoanTimes(std::span<const LoanWindow> windows);

    std::int64_t gpus_at(Duration time) const;                 ///< Pre: time >= 0
    std::optional<Duration> next_change(Duration time) const;  ///< after it; none: it is always the same
    std::optional<Duration> next_rise(Duration time) const;    ///< to more GPUs
    std::optional<Duration> next_drop(Duration time) const;    ///< to fewer
    Wide gpu_time(Duration from, Duration until) const;        ///< GPUs times nanoseconds

private:
    struct Step {
        Duration at{};  // of the day
        std::int64_t gpus = 0;
    };

    std::vector<Step> steps_;  // none where it is always the same; else each differs from the one before
    std::int64_t always_ = 0;
};

/// What does not change while a queue is played.
struct QueueSetting {
    const SharedCluster& cluster;
    LoanTimes loans;
    Duration restart{};
};

struct JobState {
    std::size_t job = 0;
    Wide left = 0;          ///< work
    Duration pause{};       ///< of a restart, before it works on
    std::int64_t gpus = 0;  ///< 0: it waits
    std::int64_t tokens_per_ks = 0;
    bool started = false;  ///< it has had GPUs
};

struct QueueState {
    Duration now{};
    std::vector<JobState> jobs;  ///< by arrival, then in the order of the document

    std::int64_t gpus() const;  ///< that they hold
};

/// The job as the document has it.
[[nodiscard]] const TrainingJob& job_of(const QueueSetting& setting, const JobState& state);

/// The job's speed on so many GPUs. Pre: the document has it.
[[nodiscard]] const Speed& speed_on(const TrainingJob& job, std::int64_t gpus);

/// GPUs that there are at a moment.
[[nodiscard]] std::int64_t gpus_at(const QueueSetting& setting, Duration now, bool with_loans);

/// How long the job still takes if it has this speed from now on: a restart, where it is another than it has.
[[nodiscard]] Duration time_left(const QueueSetting& setting, const JobState& state, const Speed& speed);

/// The next end of a job or, with loans, change of a loan. Nothing where no job runs and no loan changes.
[[nodiscard]] std::optional<Duration> next_event(const QueueSetting& setting, const QueueState& state, bool with_loans);

/// Gives each job so many GPUs, of its speeds or 0, `targets` as the state has the jobs.
void give(const QueueSetting& setting, QueueState& state, std::span<const std::int64_t> targets);

/// Moves on, and returns the jobs that are done then; they leave the state. Pre: no job ends before `until`.
std::vector<JobState> move_on(QueueState& state, Duration until);

}  // namespace pipeweaver::capacity
