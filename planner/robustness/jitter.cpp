#include "pipeweaver/planner/jitter.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/schedule/fixed_order.hpp"
#include "pipeweaver/schedule/ready_queue.hpp"
#include "pipeweaver/search/policies.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "planner/robustness/perturbed_costs.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipeweaver::planner {

namespace {

// Tasks and ranks alone vary.
Spread jitter_spread(const JitterRequest& asked) {
    emulator::Uncertainty beyond{0, 0, 0, 0, 0, 0};
    beyond.task = asked.task;
    beyond.rank = asked.slow ? 0 : asked.rank;
    return {{}, 0, beyond};
}

// Factors of the ranks of a replica in a step.
std::vector<double> rank_factors(const JitterRequest& asked, const Factors& factors, std::uint64_t step,
                                 std::size_t replica, std::size_t ranks) {
    auto all = factors.ranks(replica, ranks);
    if (!asked.slow || replica > 0) return all;
    constexpr std::uint64_t stream = 0x510;  // beside those of Factors
    Random random(asked.seed, mix(mix(step) ^ stream));
    const SlowRank& slow = *asked.slow;
    const std::uint64_t drawn = random.below(ranks);
    const auto rank = slow.rank ? static_cast<std::size_t>(*slow.rank) : static_cast<std::size_t>(drawn);
    all[rank] *= 1 + slow.least + (slow.most - slow.least) * random.uniform();
    return all;
}

// Lists with the rank of each task.
struct JitteredLists {
    JitteredLists(const schedule::Replayer& replayer, const schedule::Schedule& schedule) : order(replayer, schedule) {
        const schedule::Problem& problem = replayer.problem();
        for (const schedule::Task& task : problem.tasks) rank.push_back(static_cast<std::uint32_t>(index(task.rank)));
        for (const schedule::Rank& one : problem.ranks) tails.push_back(one.tail.count());
    }

    // What tasks take under these factors.
    void draw(const std::vector<double>& ranks, Factors::Jitter tasks, std::vector<std::int64_t>& duration_ns) const {
        duration_ns.resize(rank.size());
        for (std::size_t i = 0; i < rank.size(); ++i) {
            const double ns = static_cast<double>(order.durations()[i]) * ranks[rank[i]] * tasks.next();
            duration_ns[i] = std::max<std::int64_t>(1, std::llround(ns));
        }
    }

    schedule::FixedOrder order;
    std::vector<std::uint32_t> rank;
    std::vector<std::int64_t> tails;
};

// Of a step: makespans of the first replica; of all, and what each of their ranks has to do.
struct DrawnStep {
    Duration ready_queue{}, one_f_one_b{};
    std::vector<std::int64_t> lists;               // per replica, ns
    std::vector<std::vector<std::int64_t>> works;  // per replica, per rank, ns
};

class JitteredSteps {
public:
    JitteredSteps(std::span<const ReplicaLists> replicas, const JitterRequest& asked)
        : asked_(asked), spread_(jitter_spread(asked)) {
        for (const ReplicaLists& one : replicas) lists_.emplace_back(schedule::Replayer(*one.problem), *one.schedule);
        const schedule::Replayer first(*replicas.front().problem);
        queue_.emplace(first, *replicas.front().schedule);
        auto usual = search::apply_policy(search::one_f_one_b_policy, first);
        why_not_ = usual.why_not;
        if (usual.schedule && *usual.schedule == *replicas.front().schedule)
            why_not_ = "the lists are its own";
        else if (usual.schedule)
            usual_.emplace(first, *usual.schedule);
    }

    DrawnStep step(std::uint64_t number, std::vector<std::int64_t>& durations, std::vector<std::int64_t>& ends,
                   schedule::ReadySpace& space) const {
        const Factors factors(spread_, asked_.seed, number);
        DrawnStep drawn;
        for (std::size_t r = 0; r < lists_.size(); ++r) {
            const JitteredLists& lists = lists_[r];
            const auto ranks = rank_factors(asked_, factors, number, r, lists.tails.size());
            lists.draw(ranks, factors.jitter(0, r), durations);
            drawn.lists.push_back(lists.order.makespan(durations, ends).count());
            auto& works = drawn.works.emplace_back(lists.tails);
            for (std::size_t i = 0; i < durations.size(); ++i) works[lists.rank[i]] += durations[i];
            if (r > 0) continue;
            drawn.ready_queue = queue_->makespan(durations, space);
            if (!usual_) continue;
            usual_->draw(ranks, factors.jitter(0, r), durations);
            drawn.one_f_one_b = usual_->order.makespan(durations, ends);
        }
        return drawn;
    }

    // Of the first replica with one rank slower, nothing else varied; percent 0: as it is.
    Duration slowed(std::size_t rank, int percent) const {
        const JitteredLists& lists = lists_.front();
        std::vector<std::int64_t> durations(lists.order.durations().begin(), lists.order.durations().end()), ends;
        for (std::size_t i = 0; i < durations.size(); ++i)
            if (lists.rank[i] == rank)
                durations[i] += durations[i] / 100 * percent + durations[i] % 100 * percent / 100;
        return lists.order.makespan(durations, ends);
    }

    std::size_t ranks() const { return lists_.front().tails.size(); }

    Duration steady_queue() const {
        schedule::ReadySpace space;
        return queue_->makespan(lists_.front().order.durations(), space);
    }

    // None: there is no 1F1B.
    std::optional<Duration> steady_1f1b() const {
        std::vector<std::int64_t> ends;
        return usual_ ? std::optional(usual_->order.makespan(usual_->order.durations(), ends)) : std::nullopt;
    }

    const std::string& why_no_1f1b() const { return why_not_; }

private:
    const JitterRequest& asked_;
    Spread spread_;
    std::vector<JitteredLists> lists_;  // per replica
    std::optional<schedule::ReadyQueue> queue_;
    std::optional<JitteredLists> usual_;
    std::string why_not_;
};

template <class Of>
DrawnMakespans makespans_of(const std::vector<DrawnStep>& steps, Duration steady, Of of) {
    std::vector<Duration> all;
    for (const DrawnStep& one : steps) all.push_back(of(one));
    std::sort(all.begin(), all.end());
    return {steady, at_percent(all, 50), at_percent(all, 90), at_percent(all, 99)};
}

// What steps take where replicas, or ranks, meet at the very end alone, against steps in which all meet.
void add_savings(const std::vector<DrawnStep>& steps, JitterReport& report) {
    double together = 0;
    std::vector<double> replicas(report.replicas);
    std::vector<std::vector<double>> ranks(report.replicas);
    for (const DrawnStep& one : steps) {
        together += static_cast<double>(*std::max_element(one.lists.begin(), one.lists.end()));
        for (std::size_t r = 0; r < replicas.size(); ++r) {
            replicas[r] += static_cast<double>(one.lists[r]);
            ranks[r].resize(one.works[r].size());
            for (std::size_t i = 0; i < ranks[r].size(); ++i) ranks[r][i] += static_cast<double>(one.works[r][i]);
        }
    }
    double busiest = 0;
    for (const auto& of_replica : ranks)
        busiest = std::max(busiest, *std::max_element(of_replica.begin(), of_replica.end()));
    report.local_saves = 1 - *std::max_element(replicas.begin(), replicas.end()) / together;
    report.stale_saves = 1 - busiest / together;
}

}  // namespace

JitterReport jitter(std::span<const ReplicaLists> replicas, const JitterRequest& asked, const Executor& execute) {
    const auto ranks = static_cast<std::int64_t>(replicas.front().problem->ranks.size());
    if (asked.slow && asked.slow->rank && *asked.slow->rank >= ranks)
        fail(ErrorKind::input, "--slow: there is no rank {}, allowed are 0 to {}", *asked.slow->rank, ranks - 1);
    const JitteredSteps steps(replicas, asked);
    constexpr std::size_t at_once = 10;  // steps of a job, which share its work space
    std::vector<DrawnStep> drawn(asked.steps);
    execute((asked.steps + at_once - 1) / at_once, [&](std::size_t job) {
        std::vector<std::int64_t> durations, ends;
        schedule::ReadySpace space;
        for (std::size_t i = job * at_once; i < std::min(asked.steps, (job + 1) * at_once); ++i)
            drawn[i] = steps.step(i, durations, ends, space);
    });

    JitterReport report;
    report.asked = asked;
    report.lists =
        makespans_of(drawn, steps.slowed(0, 0), [](const DrawnStep& one) { return Duration{one.lists.front()}; });
    report.ready_queue =
        makespans_of(drawn, steps.steady_queue(), [](const DrawnStep& one) { return one.ready_queue; });
    if (const auto steady = steps.steady_1f1b())
        report.one_f_one_b = makespans_of(drawn, *steady, [](const DrawnStep& one) { return one.one_f_one_b; });
    report.why_no_1f1b = steps.why_no_1f1b();
    for (std::size_t r = 0; r < steps.ranks(); ++r) {
        auto& of_rank = report.slowed.emplace_back();
        for (std::size_t p = 0; p < slowed_percents.size(); ++p) of_rank[p] = steps.slowed(r, slowed_percents[p]);
    }
    report.replicas = replicas.size();
    add_savings(drawn, report);
    return report;
}

}  // namespace pipeweaver::planner
