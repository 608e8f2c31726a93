// Two models trained at once in opposite directions: a published pair, and pairs of the small model.
#include "pipeweaver/planner/fused_plan.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/schedule/replay.hpp"
#include "pipeweaver/schedule/stage_table.hpp"
#include "pipeweaver/search/policies.hpp"
#include "tests/support/small_request.hpp"
#include "tests/support/verified.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

// Equal stages, one a rank, under 1F1B.
schedule::Pipeline equal_stages(const std::string& name, std::size_t ranks, std::int64_t microbatches, Duration forward,
                                Bytes kept) {
    schedule::StageTable table;
    table.name = name;
    for (std::size_t r = 0; r < ranks; ++r) {
        schedule::StageTimes stage;
        stage.rank = RankId{static_cast<std::uint32_t>(r)};
        stage.forward = forward;
        stage.backward = 2 * forward;
        stage.activation = kept;
        table.stages.push_back(stage);
        table.lines.push_back(r + 2);
    }
    schedule::StageOptions options;
    options.microbatches = microbatches;
    auto problem = schedule::stage_problem(table, options);
    auto known = search::apply_policy("1f1b", schedule::Replayer(problem));
    REQUIRE(known.schedule);
    return {name, std::move(problem), std::move(*known.schedule)};
}

// Of RLHFuse's authors (github.com/FlexFusion/FlexFusion, instance exp2): 8 ranks with 8 microbatches of 5 and 10, two
// pipelines of 4 ranks with 4 of 4 and 8. One after the other 309, their greedy schedule 239, the bound and their
// best 225, with a peak of 15.6 of 1.95 and 2 a microbatch.
std::vector<schedule::Pipeline> published_pair() {
    const auto small = equal_stages("small", 4, 4, Duration{4}, Bytes{200});
    return {equal_stages("big", 8, 8, Duration{5}, Bytes{195}), small, small};
}

TEST_CASE("a published pair takes as long as its authors found in minutes, and no schedule takes less") {
    SolveRequest request;
    request.max_rounds = 1;
    const auto plan = plan_fused(published_pair(), request, in_order, {});
    CHECK(plan.alone == std::vector{Duration{225}, Duration{84}, Duration{84}});
    CHECK(plan.in_turn == Duration{309});
    CHECK(plan.found.replay.makespan == Duration{225});
    CHECK(plan.found.bound == Duration{225});
    testing::check_verified(plan.problem, plan.found);
}

TEST_CASE("what runs beside the first runs backwards, on ranks next to each other") {
    const schedule::Fused fused = schedule::fuse(published_pair());
    const schedule::Problem& problem = fused.problem;
    REQUIRE(problem.stages.size() == 16);
    std::vector<std::size_t> ranks;
    for (std::size_t s = 0; s < problem.stages.size(); ++s) {
        CHECK(problem.stages[s].stage == static_cast<std::int64_t>(s));
        ranks.push_back(index(problem.stages[s].rank));
    }
    CHECK(ranks == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 3, 2, 1, 0, 7, 6, 5, 4});
    for (const schedule::Task& task : problem.tasks)
        CHECK(index(task.rank) == ranks[static_cast<std::size_t>(*task.stage)]);
    CHECK_NOTHROW(schedule::validate(problem));
    // On its way from one model to the other a rank waits for no other: 309 is more than it takes.
    const schedule::Replay in_turn = schedule::replay(problem, fused.in_turn);
    CHECK(in_turn.outcome == schedule::Outcome::completed);
    CHECK(in_turn.makespan <= Duration{309});
}

TEST_CASE("ranks hold what both models hold, and the smaller capacity counts") {
    auto pair = published_pair();
    pair[0].problem.ranks[3] = {.capacity = Bytes{4'000}, .base = Bytes{100}, .tail = Duration{7}};
    pair[1].problem.ranks[0] = {.capacity = Bytes{3'000}, .base = Bytes{20}, .tail = Duration{2}};  // lies on rank 3
    const auto rank = schedule::fuse(pair).problem.ranks[3];
    CHECK(rank.capacity == Bytes{3'000});
    CHECK(rank.base == Bytes{120});
    CHECK(rank.tail == Duration{9});
}

TEST_CASE("pipelines beside the first have its ranks together") {
    auto pair = published_pair();
    pair.pop_back();
    CHECK_THROWS_WITH_AS(static_cast<void>(schedule::fuse(pair)),
                         "pipelines beside 'big' have 4 ranks together: allowed are its own 8", Error);
}

EmulationRequest of_small(std::int64_t pp, std::int64_t dp) {
    const Request small = testing::small_request();
    EmulationRequest request;
    request.job = small.job;
    request.batch = small.batch;
    request.job.setup = std::make_shared<emulator::Setup>(testing::small_setup({.tp = 2, .pp = pp, .dp = dp}));
    return request;
}

TEST_CASE("models at once take less than one after the other, and what their bound says at least") {
    const auto pipelines = pipelines_of(of_small(4, 1), of_small(2, 2), in_order);
    REQUIRE(pipelines.all.size() == 3);
    SolveRequest asked;
    asked.max_rounds = 2;
    asked.lower_memory = true;
    const auto plan = plan_fused(pipelines.all, asked, in_order, {});
    CHECK(plan.found.replay.makespan < plan.in_turn);
    CHECK(plan.found.replay.makespan >= plan.found.bound);
    testing::check_verified(plan.problem, plan.found);
}

TEST_CASE("models that fit alone and not together recompute, or are refused with the rank") {
    const auto most = [](double share) {
        auto first = of_small(4, 1), beside = of_small(4, 1);
        for (EmulationRequest* one : {&first, &beside})
            testing::change_setup(*one, [share](emulator::Setup& setup) {
                setup.headroom.parts_per_million = static_cast<std::int64_t>(1e6 * share);
            });
        return pipelines_of(first, beside, in_order).recompute;
    };
    CHECK(most(0.03) == emulator::Recompute::none);
    CHECK_THROWS_WITH_AS(static_cast<void>(most(0.99)), doctest::Contains("small beside small: rank"), Error);
}

}  // namespace
