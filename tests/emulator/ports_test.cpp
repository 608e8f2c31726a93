#include "pipeweaver/emulator/ports.hpp"

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/search/policies.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;

namespace {

constexpr std::int64_t across = 1, inside = 2;  // PointToPoint::gpus_per_node

// Tasks by hand, each rank's in the order in which they were added.
struct Hand {
    explicit Hand(std::size_t ranks) { step.problem.ranks.resize(ranks), schedule.order.resize(ranks); }

    TaskId task(std::uint32_t rank, std::int64_t time) {
        Task one;
        one.rank = RankId{rank};
        one.duration = Duration{time};
        step.problem.tasks.push_back(one);
        const TaskId id{static_cast<std::uint32_t>(step.problem.tasks.size() - 1)};
        schedule.order[rank].push_back(id);
        return id;
    }

    // Takes so long to start, and then so long on the wire.
    void send(TaskId from, TaskId to, std::int64_t startup, std::int64_t wire, std::int64_t link = across) {
        Transfer transfer;
        transfer.edge = step.problem.edges.size();
        transfer.asked = costdb::PointToPoint{link, Bytes{1}};
        transfer.lag = Duration{startup + wire};
        transfer.wire = Duration{wire};
        step.transfers.push_back(transfer);
        step.problem.edges.push_back({from, to, transfer.lag});
    }

    PortReplay replay() const { return replay_on_ports(step, schedule); }
    std::int64_t start(TaskId task) const { return replay().replay.start[index(task)].count(); }

    StepProblem step;
    Schedule schedule;
};

// What every schedule on ports must keep; returns how many transfers wait.
std::size_t check_ports(const StepProblem& step, const Schedule& schedule) {
    const auto on_ports = replay_on_ports(step, schedule);
    const Problem with_waits = with_lags(step.problem, on_ports.lags);
    CHECK(replay(with_waits, schedule) == on_ports.replay);
    const Replay alone = replay(step.problem, schedule);
    CHECK(on_ports.waits.lost == on_ports.replay.makespan - alone.makespan);
    CHECK(on_ports.waits.lost >= Duration{0});

    // Per port: when its wires are taken.
    std::vector<std::tuple<std::size_t, bool, bool, std::int64_t, std::int64_t>> taken;
    const auto costs = Replayer(step.problem).costs(schedule.mode);
    std::size_t waited = 0;
    for (const Transfer& one : step.transfers) {
        const Edge& edge = step.problem.edges[one.edge];
        const std::int64_t waits = (on_ports.lags[one.edge] - one.lag).count();
        CHECK(waits >= 0);
        waited += waits > 0 ? 1 : 0;
        if (one.wire == Duration{0}) continue;
        const std::size_t from = index(edge.from);
        const std::int64_t begins = (on_ports.replay.start[from] + costs[from].duration).count() + waits;
        const bool network = one.asked->gpus_per_node == 1;
        for (const bool sends : {false, true})
            taken.emplace_back(index(step.problem.tasks[index(sends ? edge.from : edge.to)].rank), sends, network,
                               begins, begins + one.wire.count());
    }
    std::sort(taken.begin(), taken.end());
    for (std::size_t i = 1; i < taken.size(); ++i) {
        const auto& [rank, sends, network, begin, end] = taken[i];
        const auto& [rank0, sends0, network0, begin0, end0] = taken[i - 1];
        if (std::tie(rank, sends, network) == std::tie(rank0, sends0, network0)) CHECK(begin >= end0);
    }
    CHECK(waited == on_ports.waits.waited);
    return waited;
}

}  // namespace

TEST_CASE("of two transfers that leave a rank at once the second is later by the first's wire time") {
    Hand hand(3);
    const auto a = hand.task(0, 10), to_1 = hand.task(1, 1), to_2 = hand.task(2, 1);
    hand.send(a, to_1, 5, 100);
    hand.send(a, to_2, 5, 30);
    CHECK(hand.start(to_1) == 10 + 5 + 100);
    CHECK(hand.start(to_2) == 10 + 100 + 5 + 30);
    CHECK(hand.replay().waits == PortWaits{2, 1, Duration{30}});
    CHECK(check_ports(hand.step, hand.schedule) == 1);
}

TEST_CASE("of two transfers that reach a rank the later waits for what is left of the first, not for its start-up") {
    Hand hand(3);
    const auto a = hand.task(0, 10), b = hand.task(1, 40);
    const auto first = hand.task(2, 1), second = hand.task(2, 1);
    hand.send(a, first, 5, 100);
    hand.send(b, second, 5, 100);
    CHECK(hand.start(first) == 10 + 105);
    CHECK(hand.start(second) == 110 + 105);
    CHECK(hand.replay().waits.waited == 1);
}

TEST_CASE("opposite directions, other ranks, other links and moments that only touch do not disturb each other") {
    Hand hand(4);
    const auto a = hand.task(0, 10), b = hand.task(1, 10), c = hand.task(2, 10);
    const auto to_b = hand.task(1, 1), to_a = hand.task(0, 1), to_d = hand.task(3, 1), near = hand.task(3, 1);
    const auto again = hand.task(0, 100 - 1 - 5);  // ends when the first is off the wire
    const auto to_b_again = hand.task(1, 1);
    hand.send(a, to_b, 5, 100);
    hand.send(b, to_a, 5, 100);          // the opposite direction
    hand.send(c, to_d, 5, 100);          // other ranks
    hand.send(a, near, 5, 100, inside);  // the node's own link
    hand.send(again, to_b_again, 5, 100);
    CHECK(hand.start(to_a) == 115);
    CHECK(hand.start(to_b) == 115);
    CHECK(hand.start(to_d) == 115);
    CHECK(hand.start(near) == 116);  // after to_d, on their rank
    CHECK(hand.replay().waits.waited == 0);
    CHECK(hand.replay().lags == std::vector<Duration>(5, Duration{105}));
}

TEST_CASE("a port takes what has been ready longest, and does not wait for a transfer whose other port is taken") {
    Hand hand(4);
    const auto a = hand.task(0, 10), b = hand.task(1, 5), later = hand.task(0, 10);
    const auto from_b = hand.task(2, 1), from_a = hand.task(2, 1), other = hand.task(3, 1);
    hand.send(b, from_b, 0, 100);     // takes rank 2's port from 5 to 105
    hand.send(a, from_a, 0, 50);      // ready at 10, waits for it
    hand.send(later, other, 0, 200);  // ready at 20: rank 0's port is free, and is taken until 220
    CHECK(hand.start(from_b) == 105);
    CHECK(hand.start(other) == 220);
    CHECK(hand.start(from_a) == 220 + 50);
    check_ports(hand.step, hand.schedule);
}

TEST_CASE("lags that are set for a schedule do not change what the next replay finds") {
    Hand hand(3);
    const auto a = hand.task(0, 10), to_1 = hand.task(1, 1), to_2 = hand.task(2, 1);
    hand.send(a, to_1, 5, 100);
    hand.send(a, to_2, 5, 30);
    const PortReplay first = hand.replay();
    CHECK(set_lags(hand.step, hand.schedule) == first.waits);
    CHECK(hand.step.problem.edges[1].lag == Duration{135});
    CHECK(replay(hand.step.problem, hand.schedule) == first.replay);
    CHECK(hand.replay().lags == first.lags);
    CHECK(hand.replay().replay == first.replay);
    CHECK(set_lags(hand.step, hand.schedule) == first.waits);
}

TEST_CASE("what transfers wait later ones may wait for: starts follow from lags and lags from starts") {
    Random random(7, 0);
    std::size_t waited = 0;
    for (int round = 0; round < 50; ++round) {
        Hand hand(4);
        std::vector<TaskId> tasks;
        for (int i = 0; i < 60; ++i) {
            const auto rank = static_cast<std::uint32_t>(random.next() % 4);
            tasks.push_back(hand.task(rank, 1 + static_cast<std::int64_t>(random.next() % 40)));
            for (int k = 0; k < 2 && i > 0; ++k) {
                const TaskId from = tasks[random.next() % static_cast<std::size_t>(i)];
                const RankId source = hand.step.problem.tasks[index(from)].rank;
                const auto wire = static_cast<std::int64_t>(random.next() % 60);
                if (source == RankId{rank})
                    hand.step.problem.edges.push_back({from, tasks.back(), {}});
                else
                    hand.send(from, tasks.back(), 5, wire, wire % 3 == 0 ? inside : across);
            }
        }
        waited += check_ports(hand.step, hand.schedule);
    }
    CHECK(waited > 1000);
}

TEST_CASE("a step's transfers hold ports for less than they take, and longer on slower links") {
    testing::SmallWorkload small({.tp = 2, .pp = 4, .dp = 1}, {5, 0, 2, 9, 1, 4});
    small.cluster.gpus_per_node = 2;  // every stage is a node
    const auto partition = small.cut("dip");
    const auto fast = require_step(build_step(small.input(partition)));
    small.cluster.network = Bandwidth{small.cluster.network.bytes_per_second / 50};
    const auto slow = require_step(build_step(small.input(partition)));
    REQUIRE(fast.transfers.size() == slow.transfers.size());
    for (std::size_t t = 0; t < fast.transfers.size(); ++t) {
        const Transfer &one = fast.transfers[t], &other = slow.transfers[t];
        CHECK(one.lag == fast.problem.edges[one.edge].lag);
        CHECK(one.asked.has_value() == (one.wire > Duration{0}));
        CHECK(one.wire <= one.lag);
        if (one.asked) CHECK(other.wire > one.wire);
    }
    const auto policy = search::apply_policy("dual-queue", Replayer(slow.problem));
    REQUIRE(policy.schedule);
    CHECK(check_ports(slow, *policy.schedule) > 0);
}
