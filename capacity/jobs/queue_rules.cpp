#include "capacity/jobs/queue_rules.hpp"

#include "capacity/jobs/knapsack.hpp"
#include "pipeweaver/base/assert.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::capacity {

namespace {

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

namespace {

// In the order of arrival, each job what it asks for.
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

struct Ranked {
    std::size_t at = 0;  // in the state
    double weight_for_time = 0;
};

// The most weight for the time left first (Smith's rule), the time being that of the fastest of its GPU counts.
std::vector<Ranked> by_weight_for_time(const QueueSetting& setting, const QueueState& state, std::int64_t capacity) {
    std::vector<Ranked> ranked;
    ranked.reserve(state.jobs.size());
    for (std::size_t i = 0; i < state.jobs.size(); ++i) {
        const TrainingJob& job = job_of(setting, state.jobs[i]);
        std::int64_t fastest = 0;
        for (const Speed& speed : job.speeds)
            if (speed.gpus <= capacity) fastest = std::max(fastest, speed.tokens_per_ks);
        ranked.push_back({i, static_cast<double>(job.weight_thousandths) * static_cast<double>(fastest) /
                                 static_cast<double>(state.jobs[i].left)});
    }
    std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
        return a.weight_for_time != b.weight_for_time ? a.weight_for_time > b.weight_for_time : a.at < b.at;
    });
    return ranked;
}

KnapsackItem options_of(const QueueSetting& setting, const JobState& state, std::int64_t capacity) {
    KnapsackItem item;
    const TrainingJob& job = job_of(setting, state);
    for (const Speed& speed : job.speeds)
        if (speed.gpus <= capacity)
            item.push_back({speed.gpus, Wide{job.weight_thousandths} * time_left(setting, state, speed).count()});
    return item;
}

std::vector<std::int64_t> targets_shared(const QueueSetting& setting, const QueueState& state, bool with_loans,
                                         std::size_t together) {
    const std::int64_t capacity = gpus_at(setting, state.now, with_loans);
    std::vector<std::size_t> share, others;
    std::vector<KnapsackItem> items;
    std::int64_t least = 0;
    for (const auto& [i, weight_for_time] : by_weight_for_time(setting, state, capacity)) {
        const std::int64_t smallest = job_of(setting, state.jobs[i]).speeds.front().gpus;
        const bool runs = share.size() < together && least + smallest <= capacity;
        (runs ? share : others).push_back(i);
        if (!runs) continue;
        least += smallest;
        items.push_back(options_of(setting, state.jobs[i], capacity));
    }
    const auto chosen = least_cost(items, capacity);
    PIPEWEAVER_ASSERT(chosen.has_value());
    std::vector<std::int64_t> targets(state.jobs.size(), 0);
    std::int64_t free = capacity;
    for (std::size_t s = 0; s < share.size(); ++s) {
        targets[share[s]] = items[s][(*chosen)[s]].gpus;
        free -= targets[share[s]];
    }
    for (const std::size_t i : others) {
        if (job_of(setting, state.jobs[i]).speeds.front().gpus > free) continue;
        const KnapsackItem item = options_of(setting, state.jobs[i], free);
        targets[i] = std::min_element(item.begin(), item.end(), [](const auto& a, const auto& b) {
                         return a.cost < b.cost;
                     })->gpus;
        free -= targets[i];
    }
    return targets;
}

// Weighted time to the last end of the jobs at hand; nothing where it is not below `bound`.
std::optional<Wide> played_out(const QueueSetting& setting, QueueState state, const QueueRule& rule,
                               const std::optional<Wide>& bound) {
    Wide ended = 0;
    while (!state.jobs.empty()) {
        Wide so_far = ended;
        for (const JobState& job : state.jobs)
            so_far += Wide{job_of(setting, job).weight_thousandths} * state.now.count();
        if (bound && so_far >= *bound) return std::nullopt;
        give(setting, state, targets_of(setting, state, rule));
        const auto next = next_event(setting, state, rule.with_loans);
        PIPEWEAVER_ASSERT(next.has_value());
        for (const JobState& job : move_on(state, *next))
            ended += Wide{job_of(setting, job).weight_thousandths} * next->count();
    }
    if (bound && ended >= *bound) return std::nullopt;
    return ended;
}

}  // namespace

std::vector<std::int64_t> targets_of(const QueueSetting& setting, const QueueState& state, const QueueRule& rule) {
    return rule.together ? targets_shared(setting, state, rule.with_loans, *rule.together)
                         : targets_in_turn(setting, state, rule.with_loans);
}

QueueRule best_rule(const QueueSetting& setting, const QueueState& state) {
    constexpr std::array<std::optional<std::size_t>, 6> ways{std::nullopt, QueueRule::all, 1, 2, 4, 8};
    const bool has_loans = !setting.cluster.loans.empty();
    QueueRule best;
    std::optional<Wide> least;
    for (const bool with_loans : {true, false}) {
        if (with_loans && !has_loans) continue;
        for (const auto& together : ways) {
            if (together && *together != QueueRule::all && *together >= state.jobs.size()) continue;
            const QueueRule rule{with_loans, together};
            if (const auto time = played_out(setting, state, rule, least)) {
                least = time;
                best = rule;
            }
        }
    }
    return best;
}

}  // namespace pipeweaver::capacity
