// Activations that a pass may leave in the host's memory: chosen by makespan, as recomputation is.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/planner/plan_options.hpp"
#include "pipeweaver/search/search.hpp"
#include "planner/way/settings.hpp"
#include "tests/search/random_problem.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;
using emulator::Recompute;
using schedule::Problem;

namespace {

constexpr std::uint32_t offloads = 1;  // among the modes below

// Two stages of the small model and two microbatches, on a link to the host from 2 to 1,000 GB/s, with room for some of
// what they would keep.
Problem drawn_problem(std::uint64_t number) {
    Random random(number);
    testing::SmallWorkload small({.tp = 2, .pp = 2, .dp = 1},
                                 {static_cast<int>(random.below(6)), static_cast<int>(random.below(6))});
    for (auto& module : small.model.modules)
        module.architecture.layers = 2 + static_cast<std::int64_t>(random.below(7));
    constexpr std::int64_t links[]{2, 25, 50, 100, 400, 1000};
    small.recipe.host_link = {1'000'000'000 * links[random.below(6)]};
    const auto partition = small.cut("megatron");
    auto input = small.input(partition);
    input.modes = {Recompute::none, Recompute::offload};
    if (number % 4 == 0) input.modes.push_back(Recompute::full);
    input.capacity = Bytes{std::int64_t{1} << 50};
    Problem problem = emulator::require_step(emulator::build_step(input)).problem;
    std::vector<Bytes> most(problem.ranks.size());
    for (const auto& pair : problem.pairs)
        most[index(problem.tasks[index(pair.forward)].rank)] += pair.modes.front().held + pair.modes.front().transient;
    const auto part = static_cast<std::int64_t>(3 + random.below(7));
    for (std::size_t r = 0; r < problem.ranks.size(); ++r)
        problem.ranks[r].capacity = problem.ranks[r].base + Bytes{most[r].count / 10 * part};
    return problem;
}

Problem without_offload_of(Problem problem) {
    for (auto& pair : problem.pairs) pair.modes.erase(pair.modes.begin() + offloads);
    return problem;
}

// A plan's request with so little room that something must be recomputed or offloaded.
Request with_little_memory(Bandwidth link) {
    Request request = testing::small_request();
    request.job.partition = "balanced";
    request.job.max_rounds = 2;
    const auto plan = testing::planned(request);
    const auto& peaks = plan.replicas.front().found.replay.peak;
    const auto usable = static_cast<double>(emulator::usable_bytes(request.job.setup->cluster).count);
    const auto peak = static_cast<double>(std::max_element(peaks.begin(), peaks.end())->count);
    testing::change_setup(request, [&](emulator::Setup& setup) {
        setup.headroom.parts_per_million = static_cast<std::int64_t>(1e6 * (1 - 0.8 * peak / usable));
        setup.recipe.host_link = link;
    });
    return request;
}

bool offloads_any(const Plan& plan) {
    const auto& menu = plan.partition().modes;
    const auto& modes = plan.replicas.front().found.schedule->mode;
    return std::any_of(modes.begin(), modes.end(), [&](std::uint32_t mode) { return menu[mode].copies(); });
}

Request asked_with(const std::string& host_link, std::string target, std::string recompute = "") {
    PlanOptions asked;
    asked.workload.model = "dip-vlm-s";
    asked.workload.cluster = "h100-sxm:16";
    asked.workload.dataset = "vlm-mix";
    asked.workload.tp = {8, false};
    asked.workload.pp = {2, false};
    asked.workload.microbatches = 4;
    asked.workload.packing = "given";
    asked.job.sample = "batch";
    asked.target = std::move(target);
    asked.recompute = std::move(recompute);
    if (!host_link.empty()) asked.workload.overrides.host_link = parse_bandwidth(host_link);
    return asked.request({}, in_order);
}

}  // namespace

TEST_CASE("which passes offload is most often what trying every choice and order finds, on small problems") {
    const auto cases = testing::cases(100, 25);
    std::uint64_t solved = 0, reached = 0, missed = 0, gains = 0;
    for (std::uint64_t n = 0; n < cases.count; ++n) {
        CAPTURE(n);
        const Problem problem = drawn_problem(n);
        REQUIRE(problem.tasks.size() == 8);
        for (const auto& pair : problem.pairs) {
            CHECK(pair.modes[offloads].forward >= pair.modes.front().forward);
            CHECK(pair.modes[offloads].backward >= pair.modes.front().backward);
            CHECK(pair.modes[offloads].held < pair.modes.front().held);
        }
        search::Options options;
        options.max_rounds = 30;
        const auto found = search::solve(schedule::Replayer(problem), options, in_order, {});
        const auto best = search_tests::best_by_force(problem);
        if (!best) {
            CHECK_FALSE(found.schedule);
            continue;
        }
        if (!found.schedule) {
            ++missed;  // something fits, though no canonical order does
            continue;
        }
        ++solved;
        CHECK(found.replay.makespan >= *best);
        reached += found.replay.makespan == *best ? 1 : 0;
        const auto without = search_tests::best_by_force(without_offload_of(problem));
        CHECK((!without || *best <= *without));
        gains += !without || *best < *without ? 1 : 0;
    }
    CHECK(gains > 0);  // over keeping or recomputing all, or nothing else fits
    CHECK(reached * 10 >= solved * 8);
    CHECK(missed * 10 <= cases.count);
}

// Copying a block at 1 GB/s takes about a hundred times as long as its passes, at 4,000 a tenth.
TEST_CASE("a plan that may offload is never slower, and offloads nothing over a slow link") {
    for (const std::int64_t gigabytes : {1, 4000}) {
        CAPTURE(gigabytes);
        Request request = with_little_memory({1'000'000'000 * gigabytes});
        request.job.recompute = emulator::usual_modes();
        const auto without = testing::planned(request);
        request.job.recompute.push_back(Recompute::offload);
        const auto plan = testing::planned(request);
        CHECK(plan.step <= without.step);
        CHECK((gigabytes != 1 || !offloads_any(plan)));
    }
}

TEST_CASE("in place of running every forward twice passes offload where the link is fast, not where it is slow") {
    for (const std::int64_t gigabytes : {1, 4000}) {
        CAPTURE(gigabytes);
        Request request = testing::small_request();
        request.job.partition = "balanced";
        request.job.max_rounds = 2;
        testing::change_setup(request,
                              [&](emulator::Setup& setup) { setup.recipe.host_link = {1'000'000'000 * gigabytes}; });
        request.job.recompute = {Recompute::full};
        const auto without = testing::planned(request);
        request.job.recompute.push_back(Recompute::offload);
        const auto plan = testing::planned(request);
        CHECK(offloads_any(plan) == (gigabytes == 4000));
        CHECK((gigabytes != 4000 || plan.step < without.step));
    }
}

TEST_CASE("each replica of the plan that is taken is told once, with its step") {
    Request request = testing::small_request(2);
    request.job.partition = "balanced";
    request.job.recompute = {Recompute::none, Recompute::offload};
    std::vector<std::size_t> told;
    Wanted wanted{.opponents = false};
    wanted.on_replica = [&](const ReplicaPlan& replica) {
        told.push_back(replica.number);
        CHECK(!replica.cut.step.problem.tasks.empty());
    };
    static_cast<void>(testing::planned(request, in_order, wanted));
    CHECK(told == std::vector<std::size_t>{0, 1});
}

TEST_CASE("a link to the host that is said may carry activations, where the target runs it") {
    const Job offered = asked_with("50GB/s", "torch-actions").job;
    CHECK(menu_of(offered) ==
          std::vector{Recompute::none, Recompute::offload, Recompute::selective, Recompute::half, Recompute::full});
    CHECK(offered.recompute.empty());  // as without the link, but for offload
    CHECK(!asked_with("", "torch-actions").job.offloads);
    CHECK(!asked_with("50GB/s", "torch-csv").job.offloads);
    CHECK(menu_of(asked_with("50GB/s", "torch-actions", "none,full").job) ==
          std::vector{Recompute::none, Recompute::full});
    CHECK_THROWS_WITH_AS(static_cast<void>(asked_with("50GB/s", "torch-csv", "none,offload")),
                         "--recompute: torch-csv offloads no activations of single passes; allowed with --target "
                         "torch-actions, any",
                         Error);
}

TEST_CASE("what a plan that may offload is held against is the same job with the rest of its menu") {
    Job job;
    CHECK(!keeping_all(job));
    job.offloads = true;
    auto kept = keeping_all(job);
    REQUIRE(kept);
    CHECK(!kept->offloads);
    CHECK(kept->recompute.empty());
    job.offloads = false;
    job.recompute = {Recompute::full, Recompute::offload};
    kept = keeping_all(job);
    REQUIRE(kept);
    CHECK(kept->recompute == std::vector{Recompute::full});
    job.recompute = {Recompute::offload};  // nothing else may be taken
    CHECK(!keeping_all(job));
    job.recompute.clear();
    job.fixed = partition::PartitionFile{};
    job.fixed->partition.modes = {Recompute::none, Recompute::offload};
    kept = keeping_all(job);
    REQUIRE(kept);
    CHECK(kept->fixed->partition.modes == std::vector{Recompute::none});
    job.fixed->partition.modes = emulator::usual_modes();
    job.offloads = true;  // a partition says itself what its passes choose from
    CHECK(!keeping_all(job));
}

TEST_CASE("what a backward computes again is not what it waits for a copy") {
    schedule::Pair pair;
    const auto add = [&](std::int64_t forward, std::int64_t backward) {
        pair.modes.push_back({Duration{forward}, Duration{backward}, {}, {}, {}, {}, {}});
    };
    add(3, 6);
    add(4, 7);  // copies
    add(3, 9);  // computes again
    CHECK(emulator::repeated_time(pair, 0) == Duration{0});
    CHECK(emulator::repeated_time(pair, 1) == Duration{0});
    CHECK(emulator::repeated_time(pair, 2) == Duration{3});
}
