#include "search/improve/stagger.hpp"

#include "search/instance/modes.hpp"
#include "search/instance/priorities.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::search;
using namespace pipeweaver::search_tests;

namespace {

Task task_of(std::uint32_t rank, TaskKind kind, std::int64_t ns, std::int64_t bytes, std::int64_t stage,
             std::int64_t microbatch, std::string module) {
    const bool forward = kind == TaskKind::forward;
    return {RankId{rank}, kind,  Duration{ns}, Bytes{forward ? bytes : 0},    Bytes{forward ? 0 : bytes},
            "t",          stage, microbatch,   std::optional<std::int64_t>{}, std::move(module)};
}

// A model whose chain runs through `path`, forwards there and backwards back, `bytes` held between.
void add_chain(Problem& problem, const std::vector<std::uint32_t>& path, std::int64_t first_stage, std::int64_t ns,
               std::int64_t bytes, std::uint32_t microbatches, const std::string& module) {
    for (std::uint32_t m = 0; m < microbatches; ++m) {
        const auto first = static_cast<std::uint32_t>(problem.tasks.size());
        const auto length = static_cast<std::uint32_t>(path.size());
        for (std::uint32_t k = 0; k < 2 * length; ++k) {
            const bool forward = k < length;
            const std::uint32_t at = forward ? k : 2 * length - 1 - k;
            problem.tasks.push_back(task_of(path[at], forward ? TaskKind::forward : TaskKind::backward,
                                            forward ? ns : 2 * ns, bytes, first_stage + at, m, module));
            if (k > 0) problem.edges.push_back({TaskId{first + k - 1}, TaskId{first + k}, {}});
        }
    }
}

// Two models in opposite directions, the shape of the fused pipelines of arXiv 2409.13221, memory for `capacity` bytes.
Problem opposite_pipelines(std::int64_t capacity) {
    Problem problem;
    problem.name = "opposite";
    problem.ranks.resize(8);
    for (auto& rank : problem.ranks) rank.capacity = Bytes{capacity};
    add_chain(problem, {0, 1, 2, 3, 4, 5, 6, 7}, 0, 2, 4, 16, "large");
    add_chain(problem, {3, 2, 1, 0}, 8, 2, 5, 8, "left");
    add_chain(problem, {7, 6, 5, 4}, 12, 2, 5, 8, "right");
    validate(problem);
    return problem;
}

}  // namespace

TEST_CASE("with moments of release no task starts before its own, and the schedule fits") {
    const auto cases = testing::cases(400);
    std::uint64_t built = 0, waits = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const auto problem = random_problem(three_ranks_in_turn(n), 900 + n);
        const Replayer replayer(problem);
        const Flat flat(replayer);
        const auto mode = uniform_modes(flat).front();
        Dispatcher dispatcher(flat);
        if (dispatcher.prepare(flat.costs(mode))) continue;
        const auto position = priorities(flat).front().position;
        dispatcher.run(all_choices[n % all_choices.size()], position);
        const std::int64_t without = dispatcher.makespan();
        std::vector<std::int64_t> release;
        Random random(3, n);
        for (std::uint32_t i = 0; i < flat.tasks(); ++i)
            release.push_back(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(without))));

        dispatcher.run(all_choices[n % all_choices.size()], position, release);

        CHECK(replayer.replay(as_schedule(flat, dispatcher.sequence(), mode)).outcome == Outcome::completed);
        // Its order, timed with waits for the moments of release: the makespan the dispatcher says.
        std::vector<std::int64_t> end(flat.tasks(), 0), clock(flat.ranks(), 0);
        std::int64_t makespan = 0;
        for (const std::uint32_t task : dispatcher.sequence()) {
            std::int64_t start = std::max(release[task], clock[flat.rank_of[task]]);
            for (const Arc& arc : flat.before[task]) start = std::max(start, end[arc.task] + arc.lag_ns);
            waits += start == release[task] ? 1 : 0;
            end[task] = start + flat.costs(mode)[task].duration;
            clock[flat.rank_of[task]] = end[task];
            makespan = std::max(makespan, end[task] + flat.rank_tail[flat.rank_of[task]]);
        }
        CHECK(makespan == dispatcher.makespan());
        ++built;
    }
    CHECK(built > cases.share(300));
    CHECK(waits > cases.share(300));
}

TEST_CASE("models that share the ranks are told from modules of one model") {
    const auto opposite = opposite_pipelines(1000);
    const Replayer two(opposite);
    const Flat of_two(two);
    CHECK(TaskGroups(of_two).several_models);

    // Only every second microbatch has images.
    Problem problem;
    problem.name = "images";
    problem.ranks.resize(1);
    for (std::uint32_t m = 0; m < 4; ++m) {
        const auto first = static_cast<std::uint32_t>(problem.tasks.size());
        if (m % 2 == 0) problem.tasks.push_back(task_of(0, TaskKind::forward, 1, 0, 0, m, "vit"));
        problem.tasks.push_back(task_of(0, TaskKind::forward, 1, 0, 1, m, "llm"));
        if (m % 2 == 0) problem.edges.push_back({TaskId{first}, TaskId{first + 1}, {}});
    }
    validate(problem);
    const Replayer one(problem);
    const Flat of_one(one);
    const TaskGroups groups(of_one);
    CHECK_FALSE(groups.several_models);
    CHECK(groups.work.size() == 2);
}

TEST_CASE("steps over staggered pipelines keep memory, and beat every list schedule of opposite pipelines") {
    const auto problem = opposite_pipelines(32);
    const Replayer replayer(problem);
    const Flat flat(replayer);
    const TaskGroups groups(flat);
    StaggerSearch search(flat, groups);
    const std::vector<std::uint32_t> mode;
    REQUIRE_FALSE(search.prepare(mode));
    // Rank 7: forwards of the large model on seven ranks come first, backwards on seven last, its own work between.
    const std::int64_t bound = 7 * 2 + 16 * (2 + 4) + 7 * 4;
    std::int64_t first = 0, best = INT64_MAX;
    for (std::uint64_t n = 0; n < testing::cases(600, 200).count; ++n) {
        Random random(1, n);
        const std::int64_t makespan = search.step(random, 2 * bound);
        CHECK((n > 0 || search.anew()));
        if (n == 0) first = makespan;
        if (makespan < best) {
            best = makespan;
            const auto replay = replayer.replay(as_schedule(flat, search.sequence(), mode));
            CHECK(replay.outcome == Outcome::completed);
            CHECK(replay.makespan.count() <= makespan);
        }
    }
    CHECK(best >= bound);
    CHECK(best < first);
    std::int64_t listed = INT64_MAX;
    Dispatcher dispatcher(flat);
    REQUIRE_FALSE(dispatcher.prepare(flat.costs(mode)));
    for (const Priority& order : priorities(flat))
        for (const Choice choice : all_choices) {
            dispatcher.run(choice, order.position);
            listed = std::min(listed, dispatcher.makespan());
        }
    CHECK(best < listed);
}
