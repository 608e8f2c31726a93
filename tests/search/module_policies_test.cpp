#include "search/policies/module_policies.hpp"

#include "pipeweaver/search/bounds.hpp"
#include "pipeweaver/search/policies.hpp"
#include "search/construct/dispatch.hpp"
#include "search/policies/zero_bubble.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

// A chain of stages with split backwards, the first stage's whole if so wanted; stage s on rank place[s].
Problem split_chain(const std::vector<std::uint32_t>& place, std::uint32_t microbatches, std::int64_t forward,
                    std::int64_t input, std::int64_t weight, bool first_whole = false) {
    Problem problem;
    problem.name = "split";
    problem.ranks.resize(*std::max_element(place.begin(), place.end()) + 1);
    const auto stages = static_cast<std::uint32_t>(place.size());
    for (std::uint32_t m = 0; m < microbatches; ++m) {
        std::optional<TaskId> last;
        const auto add = [&](std::uint32_t s, TaskKind kind, std::int64_t time, std::int64_t bytes) {
            const Bytes taken{std::max<std::int64_t>(0, bytes)}, given{std::max<std::int64_t>(0, -bytes)};
            problem.tasks.push_back({RankId{place[s]}, kind, Duration{time}, taken, given,
                                     fmt::format("{}{}.{}", letter(kind), s, m), s, m, 0, "m"});
            const TaskId made{static_cast<std::uint32_t>(problem.tasks.size() - 1)};
            if (last) problem.edges.push_back({*last, made, {}});
            return made;
        };
        std::vector<TaskId> inputs;
        for (std::uint32_t s = 0; s < stages; ++s) last = add(s, TaskKind::forward, forward, 1);
        const std::uint32_t first = first_whole ? 1 : 0;
        for (std::uint32_t s = stages; s-- > first;)
            inputs.push_back(*(last = add(s, TaskKind::input_gradient, input, 0)));
        if (first_whole) add(0, TaskKind::backward, input + weight, -1);
        for (std::uint32_t k = 0; k + first < stages; ++k) {
            last = inputs[k];
            add(stages - 1 - k, TaskKind::weight_gradient, weight, -1);
        }
    }
    validate(problem);
    return problem;
}

// An encoder v and a backbone l, each a stage on every rank; capital letters are backwards.
Problem encoder_and_backbone(std::uint32_t ranks, std::uint32_t microbatches) {
    Problem problem;
    problem.name = "two modules";
    problem.ranks.resize(ranks);
    for (std::uint32_t m = 0; m < microbatches; ++m) {
        const auto first = static_cast<std::uint32_t>(problem.tasks.size());
        const auto add = [&](std::uint32_t rank, const char* label, bool backbone, bool late, std::int64_t time) {
            problem.tasks.push_back({RankId{rank}, late ? TaskKind::backward : TaskKind::forward, Duration{time},
                                     Bytes{late ? 0 : 1}, Bytes{late ? 1 : 0}, fmt::format("{}{}.{}", label, rank, m),
                                     backbone ? ranks + rank : rank, m, 0, backbone ? "llm" : "vit"});
        };
        for (std::uint32_t r = 0; r < ranks; ++r) add(r, "v", false, false, 1);
        for (std::uint32_t r = 0; r < ranks; ++r) add(r, "l", true, false, 2);
        for (std::uint32_t r = ranks; r-- > 0;) add(r, "L", true, true, 4);
        for (std::uint32_t r = ranks; r-- > 0;) add(r, "V", false, true, 2);
        for (std::uint32_t k = 0; k + 1 < 4 * ranks; ++k)
            problem.edges.push_back({TaskId{first + k}, TaskId{first + k + 1}, {}});
    }
    validate(problem);
    return problem;
}

std::string row(const Problem& problem, const Schedule& schedule, std::size_t rank) {
    std::string text;
    for (const TaskId task : schedule.order[rank]) text += problem.tasks[index(task)].label + " ";
    return text;
}

std::string row(const Problem& problem, const PolicyResult& result, std::size_t rank) {
    REQUIRE_MESSAGE(result.schedule, result.why_not);
    return row(problem, *result.schedule, rank);
}

std::vector<std::uint32_t> in_a_row(std::uint32_t ranks) {
    std::vector<std::uint32_t> place(ranks);
    for (std::uint32_t r = 0; r < ranks; ++r) place[r] = r;
    return place;
}

}  // namespace

TEST_CASE("zb-h1 postpones as many weight gradients as ranks come before") {
    const auto problem = split_chain({0, 1}, 4, 1, 1, 1);

    const auto result = apply_policy("zb-h1", Replayer(problem));

    CHECK(row(problem, result, 0) == "F0.0 F0.1 I0.0 W0.0 F0.2 I0.1 W0.1 F0.3 I0.2 W0.2 I0.3 W0.3 ");
    CHECK(row(problem, result, 1) == "F1.0 I1.0 F1.1 I1.1 W1.0 F1.2 I1.2 W1.1 F1.3 I1.3 W1.2 W1.3 ");
    CHECK(result.replay.makespan == Duration{13});
}

TEST_CASE("zb-h1 leaves the bubble (p - 1)(F + I - W) of its paper, in 1f1b's memory") {
    struct Times {
        std::int64_t forward, input, weight;
    };
    for (const std::uint32_t ranks : {2U, 3U, 4U, 6U})
        for (const Times& t : {Times{1, 1, 1}, Times{10, 10, 10}, Times{10, 12, 8}}) {
            CAPTURE(ranks);
            const std::uint32_t microbatches = 3 * ranks;
            const auto problem = split_chain(in_a_row(ranks), microbatches, t.forward, t.input, t.weight);

            const auto result = apply_policy("zb-h1", Replayer(problem));

            const std::int64_t work = microbatches * (t.forward + t.input + t.weight);
            CHECK(result.replay.makespan == Duration{work + (ranks - 1) * (t.forward + t.input - t.weight)});
            for (const Bytes peak : result.replay.peak) CHECK(peak == Bytes{ranks});
        }
}

TEST_CASE("zero-bubble policies take a first stage's whole backward for its weight gradient") {
    // The same rows as with I and W of 1 each, which follow each other on rank 0.
    const auto problem = split_chain({0, 1}, 4, 1, 1, 1, true);
    const auto h1 = apply_policy("zb-h1", Replayer(problem));
    CHECK(row(problem, h1, 0) == "F0.0 F0.1 B0.0 F0.2 B0.1 F0.3 B0.2 B0.3 ");
    CHECK(row(problem, h1, 1) == "F1.0 I1.0 F1.1 I1.1 W1.0 F1.2 I1.2 W1.1 F1.3 I1.3 W1.2 W1.3 ");
    CHECK(h1.replay.makespan == Duration{13});
    const auto v = split_chain({0, 1, 1, 0}, 4, 1, 1, 1, true);
    CHECK(apply_policy("zb-v", Replayer(v)).replay.makespan == Duration{1 + 4 * 2 * 3});
}

TEST_CASE("zb-v follows PyTorch's table for two ranks and four microbatches, and no rank waits once it has begun") {
    const auto problem = split_chain({0, 1, 1, 0}, 4, 1, 1, 1);
    const Replayer replayer(problem);

    const auto result = apply_policy("zb-v", replayer);

    CHECK(
        row(problem, result, 0) ==
        "F0.0 F0.1 F0.2 F3.0 I3.0 W3.0 F3.1 I3.1 W3.1 F0.3 I0.0 W0.0 F3.2 I3.2 W3.2 I0.1 W0.1 F3.3 I3.3 W3.3 I0.2 W0.2 "
        "I0.3 W0.3 ");
    CHECK(
        row(problem, result, 1) ==
        "F1.0 F2.0 F1.1 F2.1 I2.0 W2.0 F1.2 I1.0 W1.0 F2.2 I2.1 W2.1 F1.3 I1.1 W1.1 F2.3 I2.2 W2.2 I1.2 I2.3 I1.3 W1.2 "
        "W2.3 W1.3 ");
    CHECK(result.replay.makespan == Duration{1 + 4 * 2 * 3});
    CHECK(best_bound(replayer).value == result.replay.makespan);
}

TEST_CASE("zb-v runs where microbatches are fewer than its table") {
    for (const std::uint32_t microbatches : {1U, 2U, 5U, 9U}) {
        const auto problem = split_chain({0, 1, 2, 2, 1, 0}, microbatches, 2, 3, 1);
        const auto result = apply_policy("zb-v", Replayer(problem));
        REQUIRE(result.schedule);
        CHECK(result.schedule->order[1].size() == microbatches * 6);
        CHECK(result.replay.makespan > Duration{microbatches * 12});
    }
}

// Eight ranks with two stages each, placed like a V, and 32 microbatches of passes of one slot: the least is 192 slots.
TEST_CASE("on eight ranks v-half and v-min hold 10 and 8 of zb-v's 16 halves, at the slots of their blocks") {
    std::vector<std::uint32_t> place = in_a_row(8);
    place.insert(place.end(), place.rbegin(), place.rend());
    const auto problem = split_chain(place, 32, 1, 1, 1);
    const Replayer replayer(problem);
    const auto most = [](const PolicyResult& result) {
        return *std::max_element(result.replay.peak.begin(), result.replay.peak.end());
    };
    const auto whole = apply_policy("zb-v", replayer), half = apply_policy("v-half", replayer),
               least = apply_policy("v-min", replayer);
    CHECK(most(whole) == Bytes{16});
    CHECK(whole.replay.makespan == Duration{199});
    CHECK(most(half) == Bytes{10});
    CHECK(half.replay.makespan == Duration{209});
    CHECK(most(least) == Bytes{8});
    CHECK(least.replay.makespan == Duration{216});
}

TEST_CASE("v-half and v-min run on any number of ranks and of microbatches, as far as memory goes") {
    for (const std::uint32_t ranks : {2U, 3U, 5U, 6U, 9U})
        for (const std::uint32_t microbatches : {1U, 3U, 14U}) {
            std::vector<std::uint32_t> place = in_a_row(ranks);
            place.insert(place.end(), place.rbegin(), place.rend());
            const auto problem = split_chain(place, microbatches, 2, 3, 1);
            for (const std::string policy : {"v-half", "v-min"}) {
                const auto result = apply_policy(policy, Replayer(problem));
                CAPTURE(ranks);
                CAPTURE(microbatches);
                CAPTURE(policy);
                REQUIRE(result.schedule);
                for (const Bytes peak : result.replay.peak) CHECK(peak <= Bytes{ranks + 2});
            }
        }
    auto tight = split_chain({0, 1, 2, 2, 1, 0}, 6, 1, 1, 1);
    for (auto& rank : tight.ranks) rank.capacity = Bytes{2};
    CHECK(apply_policy("v-min", Replayer(tight)).why_not.find("does not fit: rank") == 0);
    CHECK(apply_policy("v-min", Replayer(split_chain({0, 1}, 1, 1, 1, 1))).why_not ==
          "2 stages are not two for each of 2 ranks");
}

TEST_CASE("zero-bubble policies say why they do not apply") {
    const auto whole = encoder_and_backbone(2, 2);
    CHECK(apply_policy("zb-h1", Replayer(whole)).why_not == "no backward is split into I and W");
    const auto two = split_chain({0, 1}, 1, 1, 1, 1);
    auto partly = two;
    partly.tasks[2].kind = TaskKind::backward;
    CHECK(apply_policy("zb-v", Replayer(partly)).why_not == "the backward of task 2 'I1.0' is not split into I and W");
    const auto loop = split_chain({0, 1, 0, 1}, 2, 1, 1, 1);
    CHECK(apply_policy("zb-h1", Replayer(loop)).why_not == "rank 0 has tasks of more than one stage");
    CHECK(apply_policy("zb-v", Replayer(loop)).why_not == "stage 2 is on rank 0, a V has it on rank 1");
    CHECK(apply_policy("zb-v", Replayer(two)).why_not == "2 stages are not two for each of 2 ranks");
    auto tight = split_chain(in_a_row(3), 6, 1, 1, 1);
    for (auto& rank : tight.ranks) rank.capacity = Bytes{2};
    CHECK(apply_policy("zb-h1", Replayer(tight)).why_not.find("does not fit: rank 0") == 0);
}

TEST_CASE("bubble filling runs the encoder where the backbone waits") {
    const auto problem = encoder_and_backbone(2, 2);

    const auto result = apply_policy("bubble-filling", Replayer(problem));

    CHECK(row(problem, result, 0) == "v0.0 v0.1 l0.0 l0.1 L0.0 L0.1 V0.0 V0.1 ");
    CHECK(row(problem, result, 1) == "v1.0 v1.1 l1.0 L1.0 l1.1 L1.1 V1.0 V1.1 ");
    CHECK(result.replay.makespan == Duration{24});
}

TEST_CASE("nesting holds encoder memory of a few microbatches, however many there are") {
    std::set<std::int64_t> peaks;
    for (const std::uint32_t microbatches : {16U, 32U, 64U}) {
        const auto problem = encoder_and_backbone(4, microbatches);
        const auto result = apply_policy("nesting", Replayer(problem));
        REQUIRE(result.schedule);
        Bytes most{};
        for (const Bytes peak : result.replay.peak) most = std::max(most, peak);
        peaks.insert(most.count);
        // Everything at once would hold two bytes of each microbatch.
        CHECK(most < Bytes{2 * microbatches});
        CHECK(result.replay.makespan * 2 < Duration{microbatches * 9 * 4});
    }
    CHECK(peaks.size() == 1);
}

TEST_CASE("a window of one microbatch runs them one after the other") {
    const auto problem = encoder_and_backbone(2, 3);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    Dispatcher dispatcher(flat);
    REQUIRE_FALSE(dispatcher.prepare(flat.costs({})));
    dispatcher.run(Choice::list, flat.place, {}, 1);
    const auto replay = replayer.replay(as_schedule(flat, dispatcher.sequence(), {}));
    CHECK(replay.makespan == Duration{3 * 2 * 9});
    CHECK(replay.peak == std::vector{Bytes{2}, Bytes{2}});
    dispatcher.run(Choice::list, flat.place, {}, 3);
    CHECK(replayer.replay(as_schedule(flat, dispatcher.sequence(), {})).makespan < Duration{3 * 2 * 9});
}

TEST_CASE("looking ahead lets a rank wait for what is urgent") {
    // Rank 0 may begin A, which takes 10, or wait 2 for B, after which rank 1 has 20 to do.
    Problem problem;
    problem.name = "urgent";
    problem.ranks.resize(2);
    const auto add = [&](std::uint32_t rank, std::int64_t time, const char* label) {
        problem.tasks.push_back({RankId{rank}, TaskKind::other, Duration{time}, {}, {}, label, {}, {}, {}, ""});
    };
    add(0, 10, "A");
    add(1, 2, "before");
    add(0, 5, "B");
    add(1, 20, "after");
    problem.edges = {{TaskId{1}, TaskId{2}, {}}, {TaskId{2}, TaskId{3}, {}}};
    validate(problem);
    const Replayer replayer(problem);

    const auto result = apply_policy("critical-path", replayer);

    CHECK(row(problem, result, 0) == "B A ");
    CHECK(result.replay.makespan == Duration{27});
    const Flat flat(replayer);
    Dispatcher dispatcher(flat);
    REQUIRE_FALSE(dispatcher.prepare(flat.costs({})));
    dispatcher.run(Choice::list, std::vector<std::uint32_t>{1, 0, 2, 3});
    CHECK(row(problem, as_schedule(flat, dispatcher.sequence(), {}), 0) == "A B ");
}

TEST_CASE("policies for modules say where there is only one") {
    const auto one = split_chain({0, 1}, 2, 1, 1, 1);
    CHECK(apply_policy("bubble-filling", Replayer(one)).why_not == "there is only one module");
    auto unnamed = encoder_and_backbone(2, 2);
    unnamed.tasks[3].module.clear();
    CHECK(apply_policy("nesting", Replayer(unnamed)).why_not == "not every task has a module");
}

TEST_CASE("list policies never overflow or get stuck where the dual queue runs") {
    const auto cases = testing::cases(600);
    std::uint64_t applied = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem = random_problem({.ranks = 1 + static_cast<std::uint32_t>(n % 3),
                                             .microbatches = 5,
                                             .stages = 4,
                                             .split = n % 2 == 0,
                                             .modes = n % 3 == 0,
                                             .items = n % 4 != 0},
                                            9000 + n);
        if (problem.tasks.empty()) continue;
        const Replayer replayer(problem);
        const bool runs = apply_policy("dual-queue", replayer).schedule.has_value();
        std::optional<Duration> bound;  // takes longer than all policies
        for (const char* name : {"bubble-filling", "nesting", "critical-path"}) {
            const auto result = apply_policy(name, replayer);
            if (result.why_not.find("module") != std::string::npos) continue;
            CHECK(result.schedule.has_value() == runs);
            if (!result.schedule) continue;
            ++applied;
            CHECK(replayer.replay(*result.schedule).outcome == Outcome::completed);
            if (!bound) bound = best_bound(replayer).value;
            CHECK(*bound <= result.replay.makespan);
        }
    }
    CHECK(applied > cases.share(600));
}
