#include "pipeweaver/schedule/ready_queue.hpp"

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/schedule/fixed_order.hpp"
#include "tests/support/random_problem.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

using namespace pipeweaver;
using namespace pipeweaver::schedule;

namespace {

// Rank 0 has one task of 10 ns; rank 1 runs A of 5 ns, which waits for it, then B of 7 ns, which waits for nothing and
// keeps `kept` bytes. A takes 5 bytes and gives them back.
Problem late_first(std::int64_t kept, std::optional<Bytes> capacity) {
    Problem problem;
    problem.ranks = {{{}, {}, {}}, {capacity, {}, {}}};
    problem.tasks = {{RankId{0}, TaskKind::other, Duration{10}, {}, {}, "X", {}, {}, {}, ""},
                     {RankId{1}, TaskKind::other, Duration{5}, 5_B, 5_B, "A", {}, {}, {}, ""},
                     {RankId{1}, TaskKind::other, Duration{7}, Bytes{kept}, {}, "B", {}, {}, {}, ""}};
    problem.edges = {{TaskId{0}, TaskId{1}, {}}};
    return problem;
}

Duration from_queue(const Problem& problem, const Schedule& schedule, const std::vector<std::int64_t>& durations) {
    ReadySpace space;
    return ReadyQueue(Replayer(problem), schedule).makespan(durations, space);
}

const Schedule a_first{{{TaskId{0}}, {TaskId{1}, TaskId{2}}}, {}};

// The same, as simple and slow as can be: at every moment at which anything may begin, each idle rank takes the first
// task of what is left of its list that is ready and with which in front the rest still fits.
class SlowQueue {
public:
    SlowQueue(const Problem& problem, const Schedule& schedule, const std::vector<std::int64_t>& durations)
        : problem_(problem), costs_(Replayer(problem).costs(schedule.mode)), durations_(durations) {
        left_ = schedule.order;
        for (const Rank& rank : problem.ranks) held_.push_back(rank.base.count);
    }

    std::int64_t makespan() {
        std::int64_t makespan = 0;
        for (std::set<std::int64_t> moments{0}; !moments.empty(); moments.erase(moments.begin())) {
            const std::int64_t now = *moments.begin();
            for (auto one = running_.begin(); one != running_.end();)
                if (one->second.first == now) {
                    held_[one->first] -= costs_[one->second.second].release.count;
                    one = running_.erase(one);
                } else {
                    ++one;
                }
            for (std::size_t r = 0; r < left_.size(); ++r) {
                if (running_.count(r) != 0) continue;
                const auto task = first_of(r, now);
                if (!task) continue;
                std::erase(left_[r], TaskId{static_cast<std::uint32_t>(*task)});
                held_[r] += costs_[*task].acquire.count;
                const std::int64_t end = now + durations_[*task];
                running_[r] = {end, *task};
                ended_[*task] = end;
                makespan = std::max(makespan, end + problem_.ranks[r].tail.count());
                moments.insert(end);
                for (const Edge& edge : problem_.edges)
                    if (index(edge.from) == *task) moments.insert(end + edge.lag.count());
            }
        }
        for (const auto& list : left_) REQUIRE(list.empty());
        return makespan;
    }

private:
    bool is_ready(std::size_t task, std::int64_t now) const {
        return std::all_of(problem_.edges.begin(), problem_.edges.end(), [&](const Edge& edge) {
            if (index(edge.to) != task) return true;
            const auto from = ended_.find(index(edge.from));
            return from != ended_.end() && from->second + edge.lag.count() <= now;
        });
    }

    bool fits(std::size_t rank, std::size_t task) const {
        const auto& capacity = problem_.ranks[rank].capacity;
        if (!capacity) return true;
        std::vector<std::size_t> order{task};
        for (const TaskId id : left_[rank])
            if (index(id) != task) order.push_back(index(id));
        std::int64_t held = held_[rank];
        for (const std::size_t one : order) {
            held += costs_[one].acquire.count;
            if (held > capacity->count) return false;
            held -= costs_[one].release.count;
        }
        return true;
    }

    std::optional<std::size_t> first_of(std::size_t rank, std::int64_t now) const {
        for (const TaskId id : left_[rank])
            if (is_ready(index(id), now) && fits(rank, index(id))) return index(id);
        return std::nullopt;
    }

    const Problem& problem_;
    std::vector<TaskCost> costs_;
    const std::vector<std::int64_t>& durations_;
    std::vector<std::vector<TaskId>> left_;
    std::vector<std::int64_t> held_;
    std::map<std::size_t, std::pair<std::int64_t, std::size_t>> running_;  // of a rank: end and task
    std::map<std::size_t, std::int64_t> ended_;                            // of a task, also one that runs still
};

}  // namespace

TEST_CASE("a rank runs what is ready where the next of its list is not") {
    const Problem problem = late_first(5, {});
    // The list waits: 10 + 5 + 7. The queue runs B from 0 to 7 and A from 10 to 15.
    CHECK(replay(problem, a_first).makespan == Duration{22});
    CHECK(from_queue(problem, a_first, {10, 5, 7}) == Duration{15});
}

TEST_CASE("nothing goes ahead that would leave no room for what it passes") {
    CHECK(from_queue(late_first(5, 5_B), a_first, {10, 5, 7}) == Duration{22});
    CHECK(from_queue(late_first(5, 9_B), a_first, {10, 5, 7}) == Duration{22});
    CHECK(from_queue(late_first(5, 10_B), a_first, {10, 5, 7}) == Duration{15});
    CHECK(from_queue(late_first(0, 5_B), a_first, {10, 5, 7}) == Duration{15});
}

TEST_CASE("the queue is the slow one, whatever the problem and its times") {
    std::size_t other_than_lists = 0;
    for (std::uint64_t number = 0; number < 60; ++number) {
        CAPTURE(number);
        const auto texts = testing::random_instance(number);
        const auto file = parse_problem("p", texts.problem);
        const Schedule schedule = parse_schedule("s", texts.solution, file);
        const FixedOrder order(Replayer(file.problem), schedule);
        Random random(number);
        std::vector<std::int64_t> durations, ends;
        for (const std::int64_t one : order.durations())
            durations.push_back(1 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * one))));
        const Duration found = from_queue(file.problem, schedule, durations);
        CHECK(found.count() == SlowQueue(file.problem, schedule, durations).makespan());
        other_than_lists += found != order.makespan(durations, ends) ? 1 : 0;
    }
    CHECK(other_than_lists > 5);
}
