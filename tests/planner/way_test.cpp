#include "pipeweaver/base/random.hpp"
#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/search/policies.hpp"
#include "planner/way/run.hpp"
#include "planner/way/settings.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;
using namespace pipeweaver::planner;

namespace {

std::vector<std::string> names(const std::vector<Recompute>& settings) {
    std::vector<std::string> all;
    all.reserve(settings.size());
    for (const Recompute setting : settings) all.push_back(name_of(setting));
    return all;
}

std::vector<int> drawn_images(Random& random) {
    std::vector<int> images(3 + random.below(6));
    for (int& one : images) one = static_cast<int>(random.below(8));
    return images;
}

// A small step on four ranks under a policy.
struct Case : testing::SmallWorkload {
    explicit Case(std::uint64_t number) : Case(number, Random(number, 9)) {}

    StepProblem step(std::vector<Recompute> modes, Bytes usable) const {
        auto wanted = input(partition);
        wanted.modes = std::move(modes);
        wanted.capacity = usable;
        auto whole = require_step(build_step(wanted));
        return search::policy(policy).needs_split ? require_step(split_backwards(whole, splittable(whole))) : whole;
    }

    // Under a setting for all ranks: the most that one of them holds.
    Bytes peak(Recompute setting) const {
        const auto alone = step({setting}, Bytes{std::int64_t{1} << 50});
        const auto result = search::apply_policy(policy, Replayer(alone.problem));
        REQUIRE_MESSAGE(result.schedule, result.why_not);
        return *std::max_element(result.replay.peak.begin(), result.replay.peak.end());
    }

    partition::Partition partition;
    std::string policy;
    std::vector<Recompute> settings;
    Bytes capacity;

private:
    Case(std::uint64_t number, Random random) : SmallWorkload({.tp = 2, .pp = 4, .dp = 1}, drawn_images(random)) {
        for (auto& module : model.modules) module.architecture.layers = 8 + static_cast<std::int64_t>(random.below(9));
        // Activations that count beside the weights.
        for (auto& microbatch : microbatches) microbatch.lengths = {microbatch.tokens *= 8};
        const std::vector<std::string> policies{"1f1b", "gpipe", "interleaved", "zb-h1", "dual-queue"};
        policy = policies[number % policies.size()];
        if (policy == "interleaved")
            while (microbatches.size() % 4 != 0) microbatches.push_back(microbatches.back());
        partition = cut(number % 2 == 0 ? "balanced" : "megatron", policy == "interleaved" ? 2 : 1);
        settings = usual_settings(*this, partition);
        if (number % 3 == 0) settings.push_back(Recompute::half);
        const Bytes most = peak(Recompute::none), least = peak(Recompute::full), between = most - least;
        const double part = 1.05 * random.uniform();
        capacity = least + Bytes{static_cast<std::int64_t>(part * static_cast<double>(between.count))};
    }
};

// As if it had been built from the case's microbatches.
Step built_of(const Case& drawn, const StepProblem& step) {
    Step built;
    built.input.setup = &drawn;
    built.cut.step = step;
    return built;
}

// What ranks chose fits, and told that they do the same.
void check_own(const Case& drawn, const StepProblem& step, const ReplicaRun& own, StepUnderPolicy& runs) {
    CHECK(own.by_rank == recompute_of_ranks(step.problem, own.schedule, drawn.settings));
    for (const Bytes peak : own.peak) CHECK(peak <= drawn.capacity);
    const auto said = runs.run({.by_rank = true, .of_ranks = own.by_rank});
    REQUIRE(said);
    CHECK(said->by_rank == own.by_rank);
    CHECK(said->schedule == own.schedule);
    CHECK(said->makespan == own.makespan);
}

void check_without_schedules(const Step& built, const Case& drawn, const WayResult& fastest) {
    const WayResult times = run_steps({&built}, drawn.policy, drawn.settings, {}, false);
    CHECK(times.recompute == fastest.recompute);
    CHECK(times.makespan == fastest.makespan);
    CHECK(times.step == fastest.step);
    CHECK(times.replicas.front().peak == fastest.replicas.front().peak);
    CHECK(times.replicas.front().by_rank == fastest.replicas.front().by_rank);
    CHECK(times.replicas.front().schedule.order.empty());
}

}  // namespace

TEST_CASE("the usual settings are none, selective, every number of blocks, and full") {
    testing::SmallWorkload small({.tp = 2, .pp = 2, .dp = 1});
    const auto chain = small.cut("megatron");
    std::int64_t most = 0;
    for (const StageLayers& stage : chain.chains.front().stages)
        for (const LayerRange& part : stage.parts) most = std::max(most, part.count);
    REQUIRE(most > 2);
    std::vector<std::string> expected{"none", "selective"};
    for (std::int64_t n = 1; n < most; ++n) expected.push_back("blocks:" + std::to_string(n));
    expected.emplace_back("full");
    CHECK(names(usual_settings(small, chain)) == expected);

    // Blocks that no gradient reaches run once, whatever the setting.
    for (auto& module : small.model.modules) module.trainable = false;
    small.model.edges.front().projector_in = small.model.edges.front().projector_out = 0;
    CHECK(names(usual_settings(small, chain)) == std::vector<std::string>{"none", "selective", "full"});
}

TEST_CASE("of settings that a target is told `selective` is what its launches do by that word") {
    const auto settings_for = [](const char* name, bool fused) {
        auto setup = std::make_shared<Setup>(testing::small_setup({.tp = 2, .pp = 2, .dp = 1}));
        setup->recipe.execution.fused_attention = fused;
        Way way{.name = "first-stage", .setup = setup, .policy = "1f1b"};
        way.partition = partition::partitioner("first-stage").make(*setup, testing::small_batch({1, 2}), 1);
        setup->recipe.zero = std::max(1, target(name).launch.least_zero);
        const WayOfTarget run(way, target(name));
        REQUIRE(run.target->name == name);
        auto all = run.settings;
        std::erase_if(all, [](Recompute one) { return one.kind == Recompute::Kind::blocks; });
        return names(all);
    };
    using Names = std::vector<std::string>;
    for (const bool fused : {true, false})
        CHECK(settings_for("torchtitan", fused) == Names{"none", "second-products", "full"});
    CHECK(settings_for("megatron", true) == Names{"none", "full"});
    CHECK(settings_for("megatron", false) == Names{"none", "selective", "full"});
    CHECK(settings_for("torch-csv", true) == Names{"none", "selective", "full"});
}

TEST_CASE("the fastest setting is the fastest of all that fit, tried one by one") {
    const auto cases = testing::cases(100, 20);
    std::size_t fit = 0, by_rank = 0, blocks = 0;
    for (std::uint64_t number = 0; number < cases.count; ++number) {
        CAPTURE(number);
        const Case drawn(number);
        CAPTURE(drawn.policy);
        auto wanted = drawn.input(drawn.partition);
        const auto step = drawn.step(drawn.settings, drawn.capacity);
        StepUnderPolicy runs(step, drawn.policy, drawn.settings);
        std::optional<Duration> best;
        for (const Recompute setting : drawn.settings) {
            CAPTURE(name_of(setting));
            // Each on a step of its own, that knows no other setting.
            wanted.modes = {setting};
            wanted.capacity = drawn.capacity;
            auto built = build_step(wanted);
            if (built.step && search::policy(drawn.policy).needs_split)
                built = split_backwards(*built.step, splittable(*built.step));
            std::optional<Duration> alone;
            if (built.step) {
                const auto result = search::apply_policy(drawn.policy, Replayer(built.step->problem));
                if (result.schedule) alone = replay_on_ports(*built.step, *result.schedule).replay.makespan;
            }
            const auto one = runs.run({.everywhere = setting});
            REQUIRE(one.has_value() == alone.has_value());
            CHECK(runs.why_not().empty() == one.has_value());
            if (!one) continue;
            CHECK(one->makespan == *alone);
            CHECK(one->by_rank.empty());
            for (const Bytes peak : one->peak) CHECK(peak <= drawn.capacity);
            if (!best || *alone < *best) best = alone;
        }
        const auto own = runs.run(recompute_by_rank);
        if (own) {
            check_own(drawn, step, *own, runs);
            if (!best || own->makespan < *best) {
                best = own->makespan;
                ++by_rank;
            }
        }
        const Step built = built_of(drawn, step);
        const WayResult fastest = run_steps({&built}, drawn.policy, drawn.settings, {});
        REQUIRE(fastest.runs() == best.has_value());
        if (!fastest.runs()) continue;
        ++fit;
        if (fastest.recompute.everywhere.kind == Recompute::Kind::blocks) ++blocks;
        CHECK(fastest.makespan == *best);
        CHECK(fastest.step == *best + step.optimizer);
        check_without_schedules(built, drawn, fastest);
        const WayResult again = run_steps({&built}, drawn.policy, drawn.settings, fastest.recompute);
        CHECK(again.recompute == fastest.recompute);
        CHECK(again.replicas.front().schedule == fastest.replicas.front().schedule);
        CHECK(again.makespan == fastest.makespan);
    }
    CHECK(fit > cases.share(70));
    CHECK(by_rank > cases.share(10));
    CHECK(blocks > 0);
}

TEST_CASE("a setting that is not there does not run, nor one by rank where times decide the order") {
    const Case drawn(4);
    REQUIRE(drawn.policy == "dual-queue");
    const auto step = drawn.step(drawn.settings, Bytes{std::int64_t{1} << 50});
    StepUnderPolicy runs(step, drawn.policy, drawn.settings), in_order(step, "1f1b", drawn.settings);
    CHECK(runs.run(no_recompute));
    CHECK(!runs.run({.everywhere = Recompute::offload}));
    CHECK(!runs.run(recompute_by_rank));
    CHECK(in_order.run(recompute_by_rank));
    const std::vector<Recompute> of_ranks{Recompute::full, Recompute::none, Recompute::blocks(1), Recompute::none};
    const auto said = runs.run({.by_rank = true, .of_ranks = of_ranks});
    REQUIRE(said);
    CHECK(recompute_of_ranks(step.problem, said->schedule, drawn.settings) == of_ranks);
    CHECK(!runs.run({.by_rank = true, .of_ranks = {Recompute::full, Recompute::none}}));
    CHECK(!runs.run({.by_rank = true, .of_ranks = std::vector(4, Recompute::offload)}));
    const Step built = built_of(drawn, step);
    CHECK(run_steps({&built}, "zb-h1", drawn.settings, {}).why_not == "no backward is split into I and W");
}

// All pairs of two replicas' outcomes, setting by setting.
TEST_CASE("replicas run with the setting under which the slowest of them is fastest, of those that fit all") {
    const auto cases = testing::cases(60, 15);
    std::size_t fit = 0, neither = 0;
    for (std::uint64_t number = 0; number < cases.count; ++number) {
        CAPTURE(number);
        Case light(number);
        Case full = light;
        // The other replica has other microbatches, and less room for them.
        for (auto& microbatch : full.microbatches) microbatch.lengths = {microbatch.tokens += microbatch.tokens / 4};
        const std::vector<StepProblem> problems{light.step(light.settings, light.capacity),
                                                full.step(full.settings, light.capacity)};
        std::vector<StepRecompute> all;
        for (const Recompute one : light.settings) all.push_back({.everywhere = one});
        all.push_back(recompute_by_rank);
        std::optional<Duration> best;
        std::vector<std::optional<Duration>> best_of(2);
        std::vector<StepRecompute> chosen(2);
        for (const StepRecompute& setting : all) {
            std::optional<Duration> slowest = Duration{};
            for (std::size_t r = 0; r < problems.size(); ++r) {
                const auto run = StepUnderPolicy(problems[r], light.policy, light.settings).run(setting);
                slowest = run && slowest ? std::optional(std::max(*slowest, run->step())) : std::nullopt;
                if (!run || (best_of[r] && *best_of[r] <= run->step())) continue;
                best_of[r] = run->step();
                chosen[r] = setting;
            }
            if (slowest && (!best || *slowest < *best)) best = slowest;
        }
        const std::vector<Step> steps{built_of(light, problems[0]), built_of(full, problems[1])};
        const WayResult ran = run_steps({&steps[0], &steps[1]}, light.policy, light.settings, {});
        REQUIRE(ran.runs() == best.has_value());
        if (!best) continue;
        ++fit;
        CHECK(ran.step == *best);
        neither += ran.recompute != chosen[0] && ran.recompute != chosen[1] ? 1 : 0;
        // What is said is run where it fits both, and else gives way.
        for (const StepRecompute& setting : chosen) {
            const WayResult told = run_steps({&steps[0], &steps[1]}, light.policy, light.settings, setting);
            CHECK((told.recompute == setting || told.recompute == ran.recompute));
        }
    }
    CHECK(fit > cases.share(40));
    MESSAGE(neither, " are neither replica's own");
}

TEST_CASE("a way runs on replicas one after the other as on all of them at once") {
    const auto cases = testing::cases(40, 15);
    std::size_t ran = 0, gave_way = 0;
    for (std::uint64_t number = 0; number < cases.count; ++number) {
        CAPTURE(number);
        const Case drawn(number);
        if (search::policy(drawn.policy).needs_split) continue;
        Setup setup = drawn;
        // What is left of a GPU's memory is about what the step needs.
        const Bytes all = capacity_of(setup);
        setup.headroom.parts_per_million = static_cast<std::int64_t>(
            1e6 * (1 - static_cast<double>(drawn.capacity.count) / static_cast<double>(all.count)));
        auto other = drawn.microbatches;
        for (auto& microbatch : other) microbatch.lengths = {microbatch.tokens += microbatch.tokens / 4};
        const std::vector<Microbatches> replicas{drawn.microbatches, other, drawn.microbatches};
        Way way{.name = "drawn",
                .setup = std::make_shared<const Setup>(setup),
                .partition = drawn.partition,
                .policy = drawn.policy};
        const Target& target = targets().front();
        const BuiltWay at_once(way, replicas, target);
        for (const auto& said : {std::optional<StepRecompute>(), std::optional(no_recompute)}) {
            way.recompute = said;
            const WayResult one = at_once.run(way.policy, said);
            const WayResult other_way = run_way(way, replicas, target, false, in_order);
            CHECK(other_way.why_not == one.why_not);
            const WayResult exact = run_way(way, replicas, target, true, in_order);
            if (!one.runs()) continue;
            ++ran;
            CHECK(other_way.recompute == one.recompute);
            CHECK(other_way.step == one.step);
            CHECK(other_way.makespan == one.makespan);
            REQUIRE(other_way.replicas.size() == 3);
            for (std::size_t r = 0; r < 3; ++r) CHECK(other_way.replicas[r].peak == one.replicas[r].peak);
            CHECK(exact.runs() == (!said || one.recompute == *said));
            gave_way += exact.runs() ? 0 : 1;
        }
    }
    CHECK(ran > cases.share(60));
    CHECK(gave_way > 0);
}
