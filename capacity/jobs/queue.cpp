#include "pipeweaver/capacity/queue.hpp"

#include "capacity/jobs/queue_rules.hpp"
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace pipeweaver::capacity {

namespace {

constexpr std::array<std::string_view, 3> names{"fifo", "loan", "elastic"};
constexpr Duration longest = std::chrono::hours(24) * 36'525;

// The queue as it goes on, with what is told of it.
class Play {
public:
    Play(const SharedCluster& cluster, QueuePolicy policy, Duration restart)
        : setting_{cluster, LoanTimes(cluster.loans), restart}, since_(cluster.jobs.size()) {
        result_.policy = policy;
        result_.jobs.resize(cluster.jobs.size());
        rule_.with_loans = policy != QueuePolicy::fifo;
        arrivals_.resize(cluster.jobs.size());
        std::iota(arrivals_.begin(), arrivals_.end(), std::size_t{0});
        std::stable_sort(arrivals_.begin(), arrivals_.end(), [&](std::size_t a, std::size_t b) {
            return cluster.jobs[a].arrives < cluster.jobs[b].arrives;
        });
        state_.now = result_.begins = cluster.jobs[arrivals_.front()].arrives;
    }

    QueueResult run() {
        bool news = admit();
        while (!state_.jobs.empty() || arrived_ < arrivals_.size()) {
            if (news && result_.policy == QueuePolicy::elastic) rule_ = best_rule(setting_, state_);
            share();
            const Duration until = next();
            const std::vector<JobState> done = move_on(state_, until);
            if (until > longest) fail(ErrorKind::limit, "the queue is not through after 100 years");
            for (const JobState& job : done) end(job);
            news = admit() || !done.empty();
        }
        sum_up();
        return std::move(result_);
    }

private:
    // Takes in who has arrived, and says if someone has.
    bool admit() {
        const std::size_t before = arrived_;
        for (; arrived_ < arrivals_.size(); ++arrived_) {
            const std::size_t j = arrivals_[arrived_];
            if (setting_.cluster.jobs[j].arrives > state_.now) break;
            JobState job;
            job.job = j;
            job.left = work_of(setting_.cluster.jobs[j]);
            state_.jobs.push_back(job);
        }
        return arrived_ > before;
    }

    Duration next() const {
        auto next = next_event(setting_, state_, rule_.with_loans);
        if (arrived_ < arrivals_.size()) {
            const Duration arrives = setting_.cluster.jobs[arrivals_[arrived_]].arrives;
            next = std::min(next.value_or(arrives), arrives);
        }
        PIPEWEAVER_ASSERT(next.has_value());
        return *next;
    }

    void share() {
        const QueueState before = state_;
        give(setting_, state_, targets_of(setting_, state_, rule_));
        for (std::size_t i = 0; i < state_.jobs.size(); ++i) {
            const JobState &was = before.jobs[i], &is = state_.jobs[i];
            if (was.gpus == is.gpus) continue;
            QueuedJob& told = result_.jobs[is.job];
            if (!was.started) told.starts = state_.now;
            told.stops += is.gpus == 0 ? 1 : 0;
            told.resizes += was.gpus > 0 && is.gpus > 0 ? 1 : 0;
            close(was);
            since_[is.job] = state_.now;
        }
    }

    void close(const JobState& job) {
        if (job.gpus == 0) return;
        const Holding held{job.job, job.gpus, since_[job.job], state_.now};
        result_.holdings.push_back(held);
        result_.jobs[job.job].gpu_time += Wide{held.gpus} * (held.until - held.from).count();
    }

    void end(const JobState& job) {
        close(job);
        result_.jobs[job.job].ends = state_.now;
    }

    void sum_up() {
        std::stable_sort(result_.holdings.begin(), result_.holdings.end(), [](const Holding& a, const Holding& b) {
            return std::pair(a.until, a.job) < std::pair(b.until, b.job);
        });
        for (std::size_t j = 0; j < result_.jobs.size(); ++j) {
            const TrainingJob& job = setting_.cluster.jobs[j];
            QueuedJob& told = result_.jobs[j];
            told.queued = told.ends - job.arrives;
            for (const Holding& held : result_.holdings)
                if (held.job == j) told.queued -= held.until - held.from;
            result_.ends = std::max(result_.ends, told.ends);
            result_.weighted += Wide{job.weight_thousandths} * (told.ends - job.arrives).count();
            result_.gpu_time += told.gpu_time;
        }
        result_.loaned = loaned();
        result_.offered = Wide{setting_.cluster.gpus} * (result_.ends - result_.begins).count();
        if (result_.policy != QueuePolicy::fifo)
            result_.offered += setting_.loans.gpu_time(result_.begins, result_.ends);
    }

    // What was held beyond the cluster's own GPUs.
    Wide loaned() const {
        std::vector<std::pair<Duration, std::int64_t>> changes;
        changes.reserve(2 * result_.holdings.size());
        for (const Holding& held : result_.holdings) {
            changes.emplace_back(held.from, held.gpus);
            changes.emplace_back(held.until, -held.gpus);
        }
        std::sort(changes.begin(), changes.end());
        Wide sum = 0;
        std::int64_t used = 0;
        Duration last{};
        for (const auto& [at, gpus] : changes) {
            sum += Wide{std::max<std::int64_t>(0, used - setting_.cluster.gpus)} * (at - last).count();
            used += gpus;
            last = at;
        }
        return sum;
    }

    QueueSetting setting_;
    QueueRule rule_;
    QueueState state_;
    std::vector<std::size_t> arrivals_;  // jobs by arrival
    std::size_t arrived_ = 0;            // of them
    std::vector<Duration> since_;        // when each job got the GPUs that it holds
    QueueResult result_;
};

}  // namespace

std::string_view name_of(QueuePolicy policy) { return names.at(static_cast<std::size_t>(policy)); }

QueuePolicy queue_policy(const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<QueuePolicy>(found - names.begin());
    fail(ErrorKind::input, "{}", unknown("policy", name, std::vector<std::string>(names.begin(), names.end())));
}

QueueResult play_queue(const SharedCluster& cluster, QueuePolicy policy, Duration restart) {
    return Play(cluster, policy, restart).run();
}

}  // namespace pipeweaver::capacity
