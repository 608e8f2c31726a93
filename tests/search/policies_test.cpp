#include "pipeweaver/search/policies.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/search/policy_names.hpp"
#include "search/policies/policy_row.hpp"
#include "tests/search/random_problem.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;

namespace {

// Stage s on rank s mod `ranks`; forward 1, backward 2 (or I 1 and W 1); an activation of 1 byte. No lags.
Problem chain(std::uint32_t ranks, std::uint32_t stages, std::uint32_t microbatches, bool split = false) {
    Problem problem;
    problem.name = "chain";
    problem.ranks.resize(ranks);
    for (std::uint32_t m = 0; m < microbatches; ++m) {
        const auto first = static_cast<std::uint32_t>(problem.tasks.size());
        const auto add = [&](std::uint32_t s, TaskKind kind, std::int64_t duration, std::int64_t bytes) {
            const Bytes taken{std::max<std::int64_t>(0, bytes)}, given{std::max<std::int64_t>(0, -bytes)};
            problem.tasks.push_back({RankId{s % ranks}, kind, Duration{duration}, taken, given,
                                     fmt::format("{}{}.{}", letter(kind), s, m), s, m, 0, "m"});
        };
        for (std::uint32_t s = 0; s < stages; ++s) add(s, TaskKind::forward, 1, 1);
        for (std::uint32_t s = stages; s-- > 0;)
            add(s, split ? TaskKind::input_gradient : TaskKind::backward, split ? 1 : 2, split ? 0 : -1);
        for (std::uint32_t k = 0; k + 1 < 2 * stages; ++k)
            problem.edges.push_back({TaskId{first + k}, TaskId{first + k + 1}, {}});
        for (std::uint32_t s = stages; split && s-- > 0;) {
            add(s, TaskKind::weight_gradient, 1, -1);
            problem.edges.push_back(
                {TaskId{first + 2 * stages - 1 - s}, TaskId{static_cast<std::uint32_t>(problem.tasks.size() - 1)}, {}});
        }
    }
    validate(problem);
    return problem;
}

std::string row(const Problem& problem, const PolicyResult& result, std::size_t rank) {
    std::string text;
    REQUIRE(result.schedule);
    for (const TaskId task : result.schedule->order[rank]) text += problem.tasks[index(task)].label + " ";
    return text;
}

// All forwards, then the backwards from the last microbatch on.
Order last_microbatch_first(const Flat& flat) {
    const Cells cells(flat);
    Order order{std::vector<std::vector<std::uint32_t>>(flat.ranks()), cells.why_not()};
    for (std::size_t s = 0; s < cells.stages(); ++s) {
        auto& mine = order.ranks[cells.ranks(s).front()];
        const auto add = [&](std::span<const std::uint32_t> tasks) {
            mine.insert(mine.end(), tasks.begin(), tasks.end());
        };
        for (std::size_t m = 0; m < cells.microbatches(); ++m) add(cells.forwards(s, m));
        for (std::size_t m = cells.microbatches(); m-- > 0;) add(cells.backwards(s, m));
    }
    return order;
}

const PolicyRow toy{
    {"toy", "all forwards, then the last microbatch's backward first", false, true}, last_microbatch_first, nullptr};

}  // namespace

TEST_CASE("a policy is a function and a row") {
    const Problem problem = chain(2, 2, 3);
    const Replayer replayer(problem);
    const PolicyResult result = apply_row(toy, replayer);
    CHECK(row(problem, result, 0) == "F0.0 F0.1 F0.2 B0.2 B0.1 B0.0 ");
    CHECK(row(problem, result, 1) == "F1.0 F1.1 F1.2 B1.2 B1.1 B1.0 ");
    CHECK(result.replay.outcome == Outcome::completed);
    const Found found = as_found(toy.policy.name, result, best_bound(replayer));
    CHECK(found.strategy == "toy");
    CHECK(found.replay.makespan == result.replay.makespan);

    const PolicyRow never{{"never", "none"}, nullptr, [](const Flat&) { return PolicyResult{{}, {}, "it is a toy"}; }};
    CHECK(apply_row(never, replayer).why_not == "it is a toy");
}

TEST_CASE("the names by which code asks for policies are those of rows") {
    for (const char* name : {gpipe_policy, one_f_one_b_policy, interleaved_policy, dual_queue_policy})
        CHECK(policy(name).name == name);
}

TEST_CASE("gpipe runs all forwards, then all backwards") {
    const auto problem = chain(2, 2, 3);
    const Replayer replayer(problem);

    const auto result = apply_policy("gpipe", replayer);

    CHECK(row(problem, result, 0) == "F0.0 F0.1 F0.2 B0.0 B0.1 B0.2 ");
    CHECK(row(problem, result, 1) == "F1.0 F1.1 F1.2 B1.0 B1.1 B1.2 ");
    CHECK(result.replay.makespan == Duration{(3 + 1) * (1 + 2)});
}

TEST_CASE("1f1b warms up by the ranks after it, then alternates") {
    const auto problem = chain(3, 3, 4);
    const Replayer replayer(problem);

    const auto result = apply_policy("1f1b", replayer);

    CHECK(row(problem, result, 0) == "F0.0 F0.1 F0.2 B0.0 F0.3 B0.1 B0.2 B0.3 ");
    CHECK(row(problem, result, 1) == "F1.0 F1.1 B1.0 F1.2 B1.1 F1.3 B1.2 B1.3 ");
    CHECK(row(problem, result, 2) == "F2.0 B2.0 F2.1 B2.1 F2.2 B2.2 F2.3 B2.3 ");
    CHECK(result.replay.makespan == Duration{(4 + 2) * 3});
    CHECK(result.replay.peak == std::vector{Bytes{3}, Bytes{2}, Bytes{1}});
}

TEST_CASE("1f1b runs a weight gradient right after its input gradient") {
    const auto problem = chain(2, 2, 2, true);
    const Replayer replayer(problem);

    const auto result = apply_policy("1f1b", replayer);

    CHECK(row(problem, result, 0) == "F0.0 F0.1 I0.0 W0.0 I0.1 W0.1 ");
    CHECK(row(problem, result, 1) == "F1.0 I1.0 W1.0 F1.1 I1.1 W1.1 ");
}

TEST_CASE("interleaved follows Megatron's table for two ranks, two chunks, four microbatches") {
    const auto problem = chain(2, 4, 4);
    const Replayer replayer(problem);

    const auto result = apply_policy("interleaved", replayer);

    CHECK(row(problem, result, 0) ==
          "F0.0 F0.1 F2.0 F2.1 F0.2 B2.0 F0.3 B2.1 F2.2 B0.0 F2.3 B0.1 B2.2 B2.3 B0.2 B0.3 ");
    CHECK(row(problem, result, 1) ==
          "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 F1.2 B1.0 F1.3 B1.1 F3.2 B3.2 F3.3 B3.3 B1.2 B1.3 ");
}

TEST_CASE("a policy says why it does not apply, or by how much it does not fit") {
    auto loop = chain(2, 4, 4);
    CHECK(apply_policy("1f1b", Replayer(loop)).why_not == "rank 0 has tasks of more than one stage");
    const auto single = chain(3, 3, 4);
    CHECK(apply_policy("interleaved", Replayer(single)).why_not ==
          "3 stages do not give each of 3 ranks the same number, two or more");
    auto tight = chain(2, 2, 3);
    tight.ranks[1].capacity = Bytes{2};
    CHECK(apply_policy("gpipe", Replayer(tight)).why_not == "does not fit: rank 1 at task 9 'F1.2' is 1 B short");
    CHECK_FALSE(apply_policy("gpipe", Replayer(tight)).schedule);
    CHECK(apply_policy("1f1b", Replayer(tight)).schedule);
    loop.tasks[3].stage.reset();
    CHECK(apply_policy("interleaved", Replayer(loop)).why_not == "task 3 'F3.0' has no stage");
    CHECK_THROWS_WITH_AS(static_cast<void>(apply_policy("gpip", Replayer(loop))),
                         "unknown policy 'gpip'; did you mean 'gpipe'?", Error);
}

TEST_CASE("the dual queue alternates kinds when both could start") {
    // One rank, two microbatches: after F.0 its backward and F.1 could both start; the kind that did not run last goes.
    const auto problem = chain(1, 1, 3);
    const Replayer replayer(problem);

    CHECK(row(problem, apply_policy("dual-queue", replayer), 0) == "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 ");
}

TEST_CASE("a policy takes the fastest uniform mode that fits") {
    auto problem = chain(1, 1, 2);
    for (auto& rank : problem.ranks) rank.capacity = Bytes{3};
    const auto set = [&](std::uint32_t forward) {
        const Mode fast{Duration{1}, Duration{2}, {}, Bytes{2}, {}, {}, {}},
            slow{Duration{1}, Duration{3}, {}, Bytes{1}, {}, {}, {}};
        problem.tasks[forward].acquire = problem.tasks[forward + 1].release = Bytes{2};
        problem.pairs.push_back({TaskId{forward}, TaskId{forward + 1}, {}, {fast, slow}});
    };
    set(0);
    set(2);
    validate(problem);

    const auto gpipe = apply_policy("gpipe", Replayer(problem)), one = apply_policy("1f1b", Replayer(problem));

    CHECK(gpipe.schedule->mode == std::vector<std::uint32_t>{1, 1});  // two held at once: 2 + 2 > 3
    CHECK(one.schedule->mode == std::vector<std::uint32_t>{0, 0});
}

TEST_CASE("a policy's result reads as if a search had found it") {
    const auto problem = chain(2, 2, 3);
    const Replayer replayer(problem);
    const auto bound = best_bound(replayer);
    const auto result = apply_policy("gpipe", replayer);
    REQUIRE(result.schedule);
    const Found found = as_found("gpipe", result, bound);
    CHECK(found.schedule == result.schedule);
    CHECK(found.replay == result.replay);
    CHECK(found.bound == bound.value);
    CHECK(found.bound_name == bound.name);
    CHECK(found.strategy == "gpipe");
    REQUIRE(found.first);
    CHECK(found.first->makespan == result.replay.makespan);
    REQUIRE(found.history.size() == 1);
    CHECK(found.history.front().best == result.replay.makespan);
}

TEST_CASE("a policy that does not apply is a search that found nothing") {
    PolicyResult none;
    none.why_not = "there is only one module";
    const Found found = as_found("nesting", none, {"critical path", Duration{7}});
    CHECK_FALSE(found.schedule);
    CHECK(found.why_not == "the policy 'nesting' does not apply: there is only one module");
    CHECK(found.bound == Duration{7});
    CHECK(found.history.empty());
}
