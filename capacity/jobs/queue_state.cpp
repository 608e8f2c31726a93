#include "capacity/jobs/queue_state.hpp"

#include "pipeweaver/base/assert.hpp"

#include <algorithm>

namespace pipeweaver::capacity {

namespace {

constexpr Duration day = std::chrono::hours(24);

std::int64_t loaned_at(std::span<const LoanWindow> windows, Duration of_day) {
    for (const LoanWindow& window : windows)
        for (const Duration time : {of_day, of_day + day})
            if (window.from <= time && time < window.until) return window.gpus;
    return 0;
}

}  // namespace

LoanTimes::LoanTimes(std::span<const LoanWindow> windows) : always_(loaned_at(windows, Duration{})) {
    std::vector<Duration> edges;
    edges.reserve(2 * windows.size());
    for (const LoanWindow& window : windows) {
        edges.push_back(window.from);
        edges.push_back(window.until % day);
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    std::vector<Step> steps;
    steps.reserve(edges.size());
    for (const Duration edge : edges) steps.push_back({edge, loaned_at(windows, edge)});
    for (std::size_t i = 0; i < steps.size(); ++i)
        if (steps[i].gpus != steps[(i + steps.size() - 1) % steps.size()].gpus) steps_.push_back(steps[i]);
}

std::int64_t LoanTimes::gpus_at(Duration time) const {
    if (steps_.empty()) return always_;
    const Duration of_day = time % day;
    std::int64_t gpus = steps_.back().gpus;  // since yesterday
    for (const Step& step : steps_)
        if (step.at <= of_day) gpus = step.gpus;
    return gpus;
}

std::optional<Duration> LoanTimes::next_change(Duration time) const {
    if (steps_.empty()) return std::nullopt;
    const Duration of_day = time % day;
    for (const Step& step : steps_)
        if (step.at > of_day) return time - of_day + step.at;
    return time - of_day + day + steps_.front().at;
}

std::optional<Duration> LoanTimes::next_rise(Duration time) const {
    for (auto next = next_change(time); next; next = next_change(*next))
        if (gpus_at(*next) > gpus_at(*next - Duration(1))) return next;
    return std::nullopt;
}

std::optional<Duration> LoanTimes::next_drop(Duration time) const {
    for (auto next = next_change(time); next; next = next_change(*next))
        if (gpus_at(*next) < gpus_at(*next - Duration(1))) return next;
    return std::nullopt;
}

Wide LoanTimes::gpu_time(Duration from, Duration until) const {
    Wide sum = 0;
    while (from < until) {
        const Duration next = std::min(next_change(from).value_or(until), until);
        sum += Wide{gpus_at(from)} * (next - from).count();
        from = next;
    }
    return sum;
}

std::int64_t QueueState::gpus() const {
    std::int64_t sum = 0;
    for (const JobState& job : jobs) sum += job.gpus;
    return sum;
}

const TrainingJob& job_of(const QueueSetting& setting, const JobState& state) {
    return setting.cluster.jobs[state.job];
}

const Speed& speed_on(const TrainingJob& job, std::int64_t gpus) {
    const auto found =
        std::find_if(job.speeds.begin(), job.speeds.end(), [&](const Speed& speed) { return speed.gpus == gpus; });
    PIPEWEAVER_ASSERT(found != job.speeds.end());
    return *found;
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
        job.tokens_per_ks = speed_on(job_of(setting, job), job.gpus).tokens_per_ks;
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
