#include "pipeweaver/capacity/queue.hpp"

#include "capacity/jobs/queue_rules.hpp"
#include "pipeweaver/base/error.hpp"
#include "tests/capacity/random_cluster.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>

using namespace pipeweaver;
using namespace pipeweaver::capacity;
using namespace pipeweaver::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::int64_t hour_tokens = 3600;  // of a job at one token a second

TrainingJob job_named(const char* name, std::int64_t hours_on_one, Duration arrives, std::vector<std::int64_t> counts) {
    TrainingJob job{name, 1000, hours_on_one * hour_tokens, arrives, counts.back(), {}};
    for (const std::int64_t gpus : counts) job.speeds.push_back({gpus, 1000 * gpus});
    return job;
}

// FIFO without events: each job begins as soon as it, and everyone before it, has begun and its GPUs are free.
std::vector<std::pair<Duration, Duration>> fifo_by_hand(const SharedCluster& cluster) {
    std::vector<std::size_t> order(cluster.jobs.size());
    for (std::size_t j = 0; j < order.size(); ++j) order[j] = j;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return cluster.jobs[a].arrives < cluster.jobs[b].arrives; });
    std::vector<std::pair<Duration, Duration>> spans(order.size());
    std::vector<std::size_t> begun;
    Duration earliest{};
    for (const std::size_t j : order) {
        const TrainingJob& job = cluster.jobs[j];
        earliest = std::max(earliest, job.arrives);
        const auto used = [&](Duration at) {
            std::int64_t gpus = 0;
            for (const std::size_t other : begun)
                if (spans[other].second > at) gpus += cluster.jobs[other].asked;
            return gpus;
        };
        std::vector<Duration> moments{earliest};
        for (const std::size_t other : begun) moments.push_back(std::max(earliest, spans[other].second));
        std::sort(moments.begin(), moments.end());
        for (const Duration moment : moments) {
            if (used(moment) + job.asked > cluster.gpus) continue;
            earliest = moment;
            break;
        }
        std::int64_t speed = 0;
        for (const Speed& one : job.speeds)
            if (one.gpus == job.asked) speed = one.tokens_per_ks;
        const Wide work = Wide{job.tokens} * 1'000'000'000'000;
        spans[j] = {earliest, earliest + Duration(static_cast<std::int64_t>((work + speed - 1) / speed))};
        begun.push_back(j);
    }
    return spans;
}

std::int64_t most_gpus_at(const SharedCluster& cluster, Duration time, bool with_loans) {
    std::int64_t gpus = cluster.gpus;
    for (const LoanWindow& loan : cluster.loans)
        for (const Duration of_day : {time % 24h, time % 24h + 24h})
            if (with_loans && loan.from <= of_day && of_day < loan.until) gpus += loan.gpus;
    return gpus;
}

// What a job does in its holdings is its tokens, to the last nanosecond; returns its stops.
std::int64_t check_work(const SharedCluster& cluster, const QueueResult& queue, std::size_t j, Duration restart) {
    const TrainingJob& job = cluster.jobs[j];
    Wide done = 0, last_speed = 0;
    std::int64_t stops = 0;
    std::optional<Duration> until;
    for (const Holding& held : queue.holdings) {
        if (held.job != j) continue;
        CHECK(held.from < held.until);
        CHECK(held.from >= until.value_or(job.arrives));
        stops += until && *until < held.from ? 1 : 0;
        const Duration pause = until ? restart : 0ns;
        until = held.until;
        for (const Speed& speed : job.speeds) {
            if (speed.gpus != held.gpus) continue;
            last_speed = speed.tokens_per_ks;
            done += last_speed * std::max(0ns, held.until - held.from - pause).count();
        }
    }
    CHECK((done >= work_of(job)));
    CHECK((done - work_of(job) < last_speed));
    CHECK(until == queue.jobs[j].ends);
    return stops;
}

void check_queue(const SharedCluster& cluster, const QueueResult& queue, Duration restart) {
    Wide weighted = 0, gpu_time = 0;
    for (std::size_t j = 0; j < cluster.jobs.size(); ++j) {
        CHECK(check_work(cluster, queue, j, restart) == queue.jobs[j].stops);
        weighted += Wide{cluster.jobs[j].weight_thousandths} * (queue.jobs[j].ends - cluster.jobs[j].arrives).count();
    }
    CHECK((weighted == queue.weighted));
    std::vector<Duration> moments;
    for (const Holding& held : queue.holdings) {
        moments.insert(moments.end(), {held.from, held.until});
        gpu_time += Wide{held.gpus} * (held.until - held.from).count();
    }
    CHECK((gpu_time == queue.gpu_time));
    CHECK((gpu_time <= queue.offered));
    for (Duration day{}; day < queue.ends; day += 24h)
        for (const LoanWindow& loan : cluster.loans) moments.insert(moments.end(), {day + loan.until % 24h});
    for (const Duration moment : moments) {
        std::int64_t used = 0;
        for (const Holding& held : queue.holdings)
            if (held.from <= moment && moment < held.until) used += held.gpus;
        CHECK(used <= most_gpus_at(cluster, moment, queue.policy != QueuePolicy::fifo));
    }
}

}  // namespace

TEST_CASE("in turn, nobody overtakes") {
    SharedCluster cluster{.gpus = 4, .loans = {}, .jobs = {}};
    cluster.jobs = {job_named("a", 12, 0h, {3}), job_named("b", 8, 1h, {4}), job_named("c", 1, 2h, {1})};

    const QueueResult queue = play_queue(cluster, QueuePolicy::fifo, 10min);
    CHECK(queue.jobs[0].ends == 4h);
    CHECK(queue.jobs[1].starts == 4h);
    CHECK(queue.jobs[1].ends == 6h);
    CHECK(queue.jobs[2].starts == 6h);  // one GPU was free from 2h on
    CHECK(queue.jobs[2].queued == 4h);
    CHECK(queue.ends == 7h);
    CHECK((queue.weighted == 1000 * Wide{(4h + 5h + 5h) / 1ns}));
    CHECK((queue.gpu_time == Wide{21} * (1h / 1ns)));
    CHECK((queue.offered == Wide{28} * (1h / 1ns)));
    CHECK((queue.loaned == 0));
}

TEST_CASE("at the end of a loan the job is stopped that loses least, of two alike the last") {
    SharedCluster cluster{.gpus = 2, .loans = {{20h, 32h, 2}}, .jobs = {}};
    cluster.jobs = {job_named("a", 60, 0h, {1, 2}), job_named("b", 60, 0h, {2})};

    // From 0h to 8h both. Then there are two GPUs: a shrunk to one leaves no two for b, so one is stopped.
    const QueueResult queue = play_queue(cluster, QueuePolicy::loan, 1h);
    check_queue(cluster, queue, 1h);
    CHECK(queue.jobs[0].stops == 0);
    CHECK(queue.jobs[0].ends == 30h);
    CHECK(queue.jobs[1].stops == 1);
    // 16 hours of work till 8h; again from 20h, one hour for the restart, to 43h: 44 hours are left.
    CHECK(queue.jobs[1].ends == 43h);
    CHECK(queue.jobs[1].queued == 12h);
    CHECK((queue.loaned == Wide{2} * ((8h + 10h) / 1ns)));
}

TEST_CASE("a job shrinks rather than being stopped, and grows back when it gains by it") {
    SharedCluster cluster{.gpus = 3, .loans = {{20h, 32h, 1}}, .jobs = {}};
    cluster.jobs = {job_named("a", 100, 0h, {1, 2}), job_named("b", 90, 0h, {2})};

    const QueueResult queue = play_queue(cluster, QueuePolicy::loan, 30min);
    check_queue(cluster, queue, 30min);
    // Till 8h 16 of 100 hours; on one GPU from 8:30 to 20h 11.5; then twice as fast again from 20:30 to 8h 23, ...
    CHECK(queue.holdings[0] == Holding{0, 2, 0h, 8h});
    CHECK(queue.holdings[1] == Holding{0, 1, 8h, 20h});
    CHECK(queue.holdings[2] == Holding{0, 2, 20h, 32h});
    CHECK(queue.jobs[1].stops + queue.jobs[1].resizes == 0);
    CHECK(queue.jobs[1].ends == 45h);
    CHECK(queue.jobs[0].resizes >= 3);
}

TEST_CASE("the queue is the one that is worked out job by job, on 200 random traces") {
    for (std::uint64_t number = 0; number < 200; ++number) {
        CAPTURE(number);
        const SharedCluster cluster = drawn_cluster(number, {.jobs = 2 + number % 8});
        const QueueResult queue = play_queue(cluster, QueuePolicy::fifo, 10min);
        const auto expected = fifo_by_hand(cluster);
        for (std::size_t j = 0; j < expected.size(); ++j) {
            CHECK(queue.jobs[j].starts == expected[j].first);
            CHECK(queue.jobs[j].ends == expected[j].second);
        }
    }
}

TEST_CASE("without loans the queue is that of fifo, exactly") {
    for (std::uint64_t number = 0; number < 200; ++number) {
        CAPTURE(number);
        const SharedCluster cluster = drawn_cluster(number, {.jobs = 2 + number % 8});
        const QueueResult fifo = play_queue(cluster, QueuePolicy::fifo, 10min);
        const QueueResult loan = play_queue(cluster, QueuePolicy::loan, 10min);
        CHECK(loan.holdings == fifo.holdings);
        CHECK(loan.jobs == fifo.jobs);
        CHECK((loan.weighted == fifo.weighted));
        CHECK((loan.offered == fifo.offered));
    }
}

TEST_CASE("loans change the queue") {
    std::size_t stopped = 0, resized = 0, sooner = 0;
    for (std::uint64_t number = 0; number < 100; ++number) {
        const SharedCluster cluster = drawn_cluster(number, {.with_loans = true});
        const QueueResult fifo = play_queue(cluster, QueuePolicy::fifo, 10min);
        const QueueResult loan = play_queue(cluster, QueuePolicy::loan, 10min);
        sooner += loan.weighted < fifo.weighted ? 1 : 0;
        for (const QueuedJob& job : loan.jobs) {
            stopped += job.stops > 0 ? 1 : 0;
            resized += job.resizes > 0 ? 1 : 0;
        }
    }
    CHECK(stopped > 10);
    CHECK(resized > 10);
    CHECK(sooner > 30);
}

TEST_CASE("every job does all its work, once, on GPUs that there are") {
    for (std::uint64_t number = 0; number < 60; ++number) {
        CAPTURE(number);
        const SharedCluster cluster = drawn_cluster(number, {.with_loans = number % 3 > 0});
        const Duration restart = std::chrono::minutes(number % 4 * 20);
        for (const QueuePolicy policy : {QueuePolicy::fifo, QueuePolicy::loan, QueuePolicy::elastic})
            check_queue(cluster, play_queue(cluster, policy, restart), restart);
    }
}

TEST_CASE("what is reclaimed costs least, of all ways to shrink and stop") {
    std::size_t changed = 0;
    for (std::uint64_t number = 0; number < 200; ++number) {
        CAPTURE(number);
        const SharedCluster cluster = drawn_cluster(number, {.jobs = 1 + number % 4, .with_loans = true});
        const QueueSetting setting{cluster, LoanTimes(cluster.loans), 10min};
        QueueState state;
        state.now = cluster.loans[0].until;
        std::vector<std::int64_t> begun;
        Random random(5, number);
        for (std::size_t j = 0; j < cluster.jobs.size(); ++j) {
            state.jobs.push_back({j, work_of(cluster.jobs[j]) / Wide(1 + random.below(4)), {}, 0, 0, false});
            begun.push_back(cluster.jobs[j].speeds[random.below(cluster.jobs[j].speeds.size())].gpus);
        }
        give(setting, state, begun);
        Wide least = std::numeric_limits<std::int64_t>::max();
        const std::function<void(std::size_t, std::int64_t, Wide)> try_all = [&](std::size_t j, std::int64_t left,
                                                                                 Wide cost) {
            if (j == state.jobs.size()) {
                least = std::min(least, cost);
                return;
            }
            try_all(j + 1, left, cost + reclaim_cost(setting, state, state.jobs[j], 0));
            for (const Speed& speed : cluster.jobs[j].speeds)
                if (speed.gpus <= begun[j] && speed.gpus <= left)
                    try_all(j + 1, left - speed.gpus, cost + reclaim_cost(setting, state, state.jobs[j], speed.gpus));
        };
        least *= 1'000'000;
        try_all(0, cluster.gpus, 0);
        Wide cost = 0;
        const auto targets = reclaimed(setting, state, cluster.gpus);
        for (std::size_t j = 0; j < targets.size(); ++j)
            cost += reclaim_cost(setting, state, state.jobs[j], targets[j]);
        CHECK((cost == least));
        changed += targets != begun ? 1 : 0;
    }
    CHECK(changed > 40);
}

TEST_CASE("a long job loses little by shrinking till the next loan, and all of the day by being stopped") {
    SharedCluster cluster{.gpus = 2, .loans = {{20h, 32h, 2}}, .jobs = {}};
    cluster.jobs = {job_named("a", 1000, 0h, {1, 2, 4})};
    const QueueSetting setting{cluster, LoanTimes(cluster.loans), 1h};
    QueueState state{8h, {{0, work_of(cluster.jobs[0]), {}, 0, 0, false}}};
    give(setting, state, std::vector<std::int64_t>{4});

    // 12 hours on four GPUs are lost but for 11 on two, and a restart at 20h; stopped, all 12.
    CHECK((reclaim_cost(setting, state, state.jobs[0], 4) == 0));
    CHECK((reclaim_cost(setting, state, state.jobs[0], 2) == 1000 * Wide{(13h - 5h - 30min) / 1ns}));
    CHECK((reclaim_cost(setting, state, state.jobs[0], 0) == 1000 * Wide{13h / 1ns}));
}

TEST_CASE("with all jobs there at once elastic is never behind fifo or loan") {
    std::size_t ahead = 0;
    for (std::uint64_t number = 0; number < 150; ++number) {
        CAPTURE(number);
        const bool with_loans = number % 2 == 0;
        const SharedCluster cluster =
            drawn_cluster(number, {.jobs = 2 + number % 5, .arrive_later = false, .with_loans = with_loans});
        const Duration restart = std::chrono::minutes(number % 3 * 30);
        const QueueResult fifo = play_queue(cluster, QueuePolicy::fifo, restart);
        const QueueResult loan = play_queue(cluster, QueuePolicy::loan, restart);
        const QueueResult elastic = play_queue(cluster, QueuePolicy::elastic, restart);
        CHECK((elastic.weighted <= fifo.weighted));
        CHECK((elastic.weighted <= loan.weighted));
        ahead += elastic.weighted < std::min(fifo.weighted, loan.weighted) ? 1 : 0;
    }
    CHECK(ahead > 75);
}

namespace {

double least_by_trying_all(const SharedCluster& cluster, const std::vector<double>& left);

// Seconds x weight until all are done if the jobs that are left have these speeds (null: it waits) until the next end.
double least_after(const SharedCluster& cluster, std::vector<double> left, const std::vector<const Speed*>& given) {
    double next = std::numeric_limits<double>::infinity(), weight = 0;
    const auto per_second = [&](std::size_t j) { return static_cast<double>(given[j]->tokens_per_ks) / 1000; };
    for (std::size_t j = 0; j < left.size(); ++j) {
        if (left[j] > 0) weight += static_cast<double>(cluster.jobs[j].weight_thousandths) / 1000;
        if (given[j] != nullptr) next = std::min(next, left[j] / per_second(j));
    }
    if (next == std::numeric_limits<double>::infinity()) return next;
    for (std::size_t j = 0; j < left.size(); ++j) {
        if (given[j] != nullptr) left[j] -= next * per_second(j);
        if (left[j] < 1e-3) left[j] = 0;
    }
    return weight * next + least_by_trying_all(cluster, left);
}

// The least seconds x weight of all ways to give GPUs away at starts and ends. `left` is in tokens; a restart takes no
// time.
double least_by_trying_all(const SharedCluster& cluster, const std::vector<double>& left) {
    if (std::all_of(left.begin(), left.end(), [](double tokens) { return tokens <= 0; })) return 0;
    double least = std::numeric_limits<double>::infinity();
    std::vector<const Speed*> given(left.size(), nullptr);
    const std::function<void(std::size_t, std::int64_t)> choose = [&](std::size_t j, std::int64_t gpus) {
        if (j == left.size()) {
            least = std::min(least, least_after(cluster, left, given));
            return;
        }
        given[j] = nullptr;
        choose(j + 1, gpus);
        for (const Speed& speed : cluster.jobs[j].speeds) {
            if (left[j] <= 0 || speed.gpus > gpus) break;
            given[j] = &speed;
            choose(j + 1, gpus - speed.gpus);
        }
        given[j] = nullptr;
    };
    choose(0, cluster.gpus);
    return least;
}

}  // namespace

TEST_CASE("with jobs that arrive later elastic is mostly ahead") {
    std::size_t ahead = 0, behind = 0;
    for (std::uint64_t number = 0; number < 200; ++number) {
        const SharedCluster cluster = drawn_cluster(number, {.jobs = 4 + number % 12, .with_loans = number % 2 == 0});
        const QueueResult fifo = play_queue(cluster, QueuePolicy::fifo, 10min);
        const QueueResult elastic = play_queue(cluster, QueuePolicy::elastic, 10min);
        ahead += elastic.weighted < fifo.weighted ? 1 : 0;
        behind += elastic.weighted > fifo.weighted ? 1 : 0;
    }
    CHECK(ahead >= 180);
    CHECK(behind <= 5);
}

TEST_CASE("elastic is near the best of all ways to share, and never before it") {
    double sum = 0, worst = 0;
    constexpr std::uint64_t cases = 60;
    for (std::uint64_t number = 0; number < cases; ++number) {
        CAPTURE(number);
        const SharedCluster cluster = drawn_cluster(number, {.jobs = 3, .arrive_later = false});
        std::vector<double> tokens;
        for (const TrainingJob& job : cluster.jobs) tokens.push_back(static_cast<double>(job.tokens));
        const double least = least_by_trying_all(cluster, tokens);
        const double found = static_cast<double>(play_queue(cluster, QueuePolicy::elastic, 0ns).weighted) * 1e-12;
        const double gap = found / least - 1;
        CHECK(gap > -1e-6);
        sum += gap;
        worst = std::max(worst, gap);
    }
    CHECK(sum / cases < 0.01);
    CHECK(worst < 0.05);
}

TEST_CASE("a queue of over 100 years is refused") {
    SharedCluster cluster{.gpus = 1, .loans = {}, .jobs = {}};
    for (int j = 0; j < 12; ++j) cluster.jobs.push_back(job_named("a", 9 * 8766, 0h, {1}));
    CHECK_THROWS_WITH_AS((void)play_queue(cluster, QueuePolicy::fifo, 0ns), "the queue is not through after 100 years",
                         Error);
}

TEST_CASE("an unknown policy is named with the nearest") {
    CHECK(queue_policy("elastic") == QueuePolicy::elastic);
    CHECK_THROWS_WITH_AS((void)queue_policy("elastc"), "unknown policy 'elastc'; did you mean 'elastic'?", Error);
}
