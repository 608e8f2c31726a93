#include "capacity/jobs/queue_state.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>

namespace pipeweaver::capacity {

std::int64_t QueueState::gpus() const {
    std::int64_t sum = 0;
    for (const JobState& job : jobs) sum += job.gpus;
    return sum;
}

const TrainingJob& job_of(const QueueSetting& setting, const JobState& state) {
    return setting.cluster.jobs[state.job];
}

std::int64_t gpus_at(const QueueSetting& setting, Duration now, bool with_loans) {
    return setting.cluster.gpus + (with_loans ? setting.loans.gpus_at(now) : 0);
}

Duration time_left(const QueueSetting& setting, const JobState& state, const Speed& speed) {
    const Duration works = time_for(state.left, speed.tokens_per_ks);
    if (state.gpus == speed.gpus) return state.pause + works;
    return works + (state.started ? setting.restart : Duration{});
}

std::optional<Duration> next_event(const QueueSetting& setting, const QueueState& state, bool with_loans) {
    std::optional<Duration> next;
    if (with_loans && !state.jobs.empty()) next = setting.loans.next_change(state.now);
    for (const JobState& job : state.jobs) {
        if (job.gpus == 0) continue;
        const Duration ends = state.now + job.pause + time_for(job.left, job.tokens_per_ks);
        if (!next || ends < *next) next = ends;
    }
    return next;
}

void give(const QueueSetting& setting, QueueState& state, std::span<const std::int64_t> targets) {
    PIPEWEAVER_ASSERT(targets.size() == state.jobs.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
        JobState& job = state.jobs[i];
        if (targets[i] == job.gpus) continue;
        job.gpus = targets[i];
        job.pause = Duration{};
        job.tokens_per_ks = 0;
        if (job.gpus == 0) continue;
        const auto& speeds = job_of(setting, job).speeds;
        const auto found =
            std::find_if(speeds.begin(), speeds.end(), [&](const Speed& speed) { return speed.gpus == job.gpus; });
        PIPEWEAVER_ASSERT(found != speeds.end());
        job.tokens_per_ks = found->tokens_per_ks;
        if (job.started) job.pause = setting.restart;
        job.started = true;
    }
}

std::vector<JobState> move_on(QueueState& state, Duration until) {
    const Duration passes = until - state.now;
    state.now = until;
    std::vector<JobState> done, others;
    others.reserve(state.jobs.size());
    for (JobState& job : state.jobs) {
        if (job.gpus > 0) {
            const Duration paused = std::min(job.pause, passes);
            job.pause -= paused;
            job.left -= Wide{job.tokens_per_ks} * (passes - paused).count();
        }
        (job.left <= 0 ? done : others).push_back(job);
    }
    state.jobs = std::move(others);
    return done;
}

}  // namespace pipeweaver::capacity
