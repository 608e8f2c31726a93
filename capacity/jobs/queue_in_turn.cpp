#include "capacity/jobs/queue_in_turn.hpp"

#include "capacity/jobs/knapsack.hpp"
#include "pipeweaver/base/assert.hpp"

#include <algorithm>

namespace pipeweaver::capacity {

namespace {

const Speed& speed_on(const TrainingJob& job, std::int64_t gpus) {
    const auto found =
        std::find_if(job.speeds.begin(), job.speeds.end(), [&](const Speed& speed) { return speed.gpus == gpus; });
    PIPEWEAVER_ASSERT(found != job.speeds.end());
    return *found;
}

// Whether a job gains by all the GPUs that it asks for: it is done sooner, or has done more when a loan ends.
bool gains_by_asked(const QueueSetting& setting, const QueueState& state, const JobState& job, bool with_loans) {
    const TrainingJob& of = job_of(setting, job);
    const Speed& asked = speed_on(of, of.asked);
    const Duration as_it_is = time_left(setting, job, speed_on(of, job.gpus));
    const Duration grown = time_left(setting, job, asked);
    const auto drop = with_loans ? setting.loans.next_drop(state.now) : std::nullopt;
    if (!drop || state.now + grown <= *drop) return grown < as_it_is;
    const Duration until = *drop - state.now;
    const auto done = [&](Duration pause, std::int64_t tokens_per_ks) {
        return Wide{tokens_per_ks} * std::max(Duration{}, until - pause).count();
    };
    return done(setting.restart, asked.tokens_per_ks) > done(job.pause, job.tokens_per_ks);
}

// A job that begins on GPUs on loan works before they are taken back.
bool may_begin(const QueueSetting& setting, const QueueState& state, std::int64_t gpus, bool with_loans) {
    const auto drop = with_loans ? setting.loans.next_drop(state.now) : std::nullopt;
    return !drop || gpus <= setting.cluster.gpus || *drop - state.now > setting.restart;
}

}  // namespace

Wide reclaim_cost(const QueueSetting& setting, const QueueState& state, const JobState& job, std::int64_t gpus) {
    if (gpus == job.gpus) return 0;
    const TrainingJob& of = job_of(setting, job);
    const Duration as_it_is = time_left(setting, job, speed_on(of, job.gpus));
    const auto rise = setting.loans.next_rise(state.now);
    const Duration until = rise ? *rise - state.now : as_it_is;
    Duration lost = until + setting.restart;
    if (gpus > 0) {
        const Speed& speed = speed_on(of, gpus);
        const Duration works = std::max(Duration{}, until - setting.restart);
        const Wide does = Wide{speed.tokens_per_ks} * works.count();
        const auto worth = static_cast<std::int64_t>(does / job.tokens_per_ks);  // of its time before
        lost = std::max(Duration{}, lost - Duration(worth));
        const Duration shrunk = time_left(setting, job, speed);
        if (shrunk <= until) lost = std::max(Duration{}, shrunk - as_it_is);
    }
    return Wide{of.weight_thousandths} * lost.count();
}

std::vector<std::int64_t> reclaimed(const QueueSetting& setting, const QueueState& state, std::int64_t capacity) {
    std::vector<KnapsackItem> items;  // the last arrival first: of jobs that lose the same the last makes room
    items.reserve(state.jobs.size());
    for (auto job = state.jobs.rbegin(); job != state.jobs.rend(); ++job) {
        KnapsackItem item{{job->gpus, 0}};
        for (const Speed& speed : job_of(setting, *job).speeds)
            if (speed.gpus < job->gpus) item.push_back({speed.gpus, reclaim_cost(setting, state, *job, speed.gpus)});
        if (job->gpus > 0) item.push_back({0, reclaim_cost(setting, state, *job, 0)});
        items.push_back(std::move(item));
    }
    const auto chosen = least_cost(items, capacity);
    PIPEWEAVER_ASSERT(chosen.has_value());  // all may be stopped
    std::vector<std::int64_t> targets(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) targets[items.size() - 1 - i] = items[i][(*chosen)[i]].gpus;
    return targets;
}

std::vector<std::int64_t> targets_in_turn(const QueueSetting& setting, const QueueState& state, bool with_loans) {
    const std::int64_t capacity = gpus_at(setting, state.now, with_loans);
    std::vector<std::int64_t> targets;
    targets.reserve(state.jobs.size());
    for (const JobState& job : state.jobs) targets.push_back(job.gpus);
    std::int64_t used = state.gpus();
    if (used > capacity) {
        targets = reclaimed(setting, state, capacity);
        used = 0;
        for (const std::int64_t gpus : targets) used += gpus;
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
        const JobState& job = state.jobs[i];
        const std::int64_t asked = job_of(setting, job).asked;
        const bool fits = used - targets[i] + asked <= capacity;
        if (targets[i] == 0) {
            // Nobody overtakes.
            if (!fits || !may_begin(setting, state, used + asked, with_loans)) break;
        } else if (targets[i] == asked || targets[i] != job.gpus || !fits ||
                   !gains_by_asked(setting, state, job, with_loans)) {
            continue;
        }
        used += asked - targets[i];
        targets[i] = asked;
    }
    return targets;
}

}  // namespace pipeweaver::capacity
