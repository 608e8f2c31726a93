#include "planner/evaluate/step.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_workload.hpp"
#include "tests/support/times.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

// A batch on four ranks, in a setup that keeps what it prices.
struct Small {
    emulator::Setup setup = testing::small_setup({.tp = 2, .pp = 4, .dp = 1});
    Microbatches microbatches = testing::small_batch({5, 0, 2, 9});

    partition::Partition cut(std::string_view partitioner) const {
        return partition::partitioner(partitioner).make(setup, microbatches, 1);
    }

    Step evaluated(const partition::Partition& partition, const StepWanted& step = {},
                   const PoliciesWanted& wanted = {}, const Executor& execute = in_order) const {
        return evaluate(setup, partition, microbatches, step, wanted, execute);
    }
};

void check_equal(const Step& one, const Step& other) {
    const auto &a = one.cut.step.problem.tasks, &b = other.cut.step.problem.tasks;
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].duration == b[i].duration);
    CHECK(one.split.has_value() == other.split.has_value());
    CHECK(one.bound.value == other.bound.value);
    CHECK(one.bound.name == other.bound.name);
    REQUIRE(one.policies.size() == other.policies.size());
    for (std::size_t i = 0; i < one.policies.size(); ++i) {
        CHECK(one.policies[i].policy == other.policies[i].policy);
        CHECK(one.policies[i].on_split == other.policies[i].on_split);
        CHECK(one.policies[i].makespan() == other.policies[i].makespan());
        CHECK(one.policies[i].result.schedule == other.policies[i].result.schedule);
        CHECK(one.policies[i].result.why_not == other.policies[i].result.why_not);
    }
}

}  // namespace

TEST_CASE("every policy of a partition is applied, those that need it on the step with split backwards") {
    const Small small;
    const auto known = small.evaluated(small.cut("megatron"), {}, {});
    REQUIRE(known.split);
    REQUIRE(known.policies.size() == search::policies().size());
    for (std::size_t i = 0; i < known.policies.size(); ++i) {
        const PolicyRun& run = known.policies[i];
        CHECK(run.policy == search::policies()[i].name);
        CHECK(run.on_split == search::policies()[i].needs_split);
        if (!run.applies()) continue;
        CHECK(known.bound.value <= run.makespan());
        CHECK(known.fastest()->makespan() <= run.makespan());
    }
    REQUIRE(known.run("zb-h1"));
    CHECK(known.run("zb-h1")->applies());
    CHECK(!known.shortage);
    CHECK(!known.inexpressible);

    // Without split backwards, those policies say so.
    const auto whole = small.evaluated(small.cut("megatron"), {}, {.split = false});
    CHECK(!whole.run("zb-h1")->applies());
    CHECK(whole.run("1f1b")->makespan() == known.run("1f1b")->makespan());
}

TEST_CASE("a step that does not fit is answered with the rank and the bytes that are short") {
    const Small small;
    const auto known = small.evaluated(small.cut("dip"), {.name = "step", .capacity = Bytes{1000}});
    REQUIRE(known.shortage);
    CHECK(known.shortage->rank == RankId{0});
    CHECK(known.shortage->usable == Bytes{1000});
    CHECK(known.shortage->short_by() == known.shortage->needed() - Bytes{1000});
    CHECK(known.shortage->short_by() > 0_B);
    CHECK(known.policies.empty());
    CHECK(known.fastest() == nullptr);
    CHECK(known.cut.partition.name == "dip");
}

TEST_CASE("policies that are chosen are applied alone, none where none is chosen") {
    const Small small;
    const auto partition = small.cut("balanced");
    const std::vector<std::string> names{"gpipe", "1f1b"};
    const auto chosen = small.evaluated(partition, {}, {.policies = names});
    REQUIRE(chosen.policies.size() == 2);
    for (const std::string& name : names) {
        REQUIRE(chosen.run(name));
        CHECK(chosen.run(name)->applies());
    }
    CHECK(chosen.run("dual-queue") == nullptr);

    const auto none = small.evaluated(partition, {}, {.policies = std::vector<std::string>{}});
    CHECK(none.policies.empty());
    CHECK(none.bound.value == chosen.bound.value);
}

TEST_CASE("when time has ended one policy is tried anyhow, or none, later the others are, and what is known stays") {
    const Small small;
    const auto partition = small.cut("megatron");
    const Time ended = testing::ended();
    const auto tried = [](const Step& known) {
        return std::count_if(known.policies.begin(), known.policies.end(),
                             [](const PolicyRun& run) { return !run.left_out; });
    };
    auto known = small.evaluated(partition, {}, {.time = ended});
    CHECK(tried(known) == 1);
    REQUIRE(known.run("dual-queue")->applies());
    const auto none = small.evaluated(partition, {}, {.time = ended, .one_anyhow = false});
    CHECK(tried(none) == 0);
    CHECK(none.policies.front().result.why_not == no_time_left);

    apply_policies(known, {});
    check_equal(known, small.evaluated(partition));
}

TEST_CASE("a target's rule that a step breaks is said, and no policy is applied") {
    const Small small;
    const Target& torch = target("torch-csv");
    const auto known = small.evaluated(small.cut("dip"), {.name = "step", .target = &torch});
    REQUIRE(known.inexpressible);
    CHECK(known.inexpressible == torch.inexpressible(known.cut.step.problem));
    CHECK(known.inexpressible->find("PyTorch") != std::string::npos);
    CHECK(known.policies.empty());

    Small padded;
    padded.microbatches = partition::pad(small.microbatches).microbatches;
    const auto chain = padded.evaluated(padded.cut("megatron"),
                                        {.name = "step", .target = &torch, .menu = {emulator::Recompute::none}});
    CHECK(!chain.inexpressible);
    REQUIRE(chain.fastest());
}

TEST_CASE("where a target pads, the microbatches of all replicas have one shape, else their own") {
    const Small small;
    const Microbatches one{small.microbatches[0]}, other{small.microbatches.begin() + 1, small.microbatches.end()};
    REQUIRE(shapes_of(small.setup.model, {one.front(), other.front()}) == 2);
    const auto shapes_in = [&](std::string_view name, std::int64_t pp) {
        const auto run = as_run_by(target(name), {.tp = 2, .pp = pp, .dp = 2}, {one, other});
        REQUIRE(run.size() == 2);
        CHECK(run[0].size() == one.size());
        CHECK(run[1].size() == other.size());
        return shapes_of(small.setup.model, together(run));
    };
    CHECK(shapes_in("torchtitan", 2) == 1);
    CHECK(shapes_in("torchtitan", 1) == shapes_of(small.setup.model, small.microbatches));
    CHECK(shapes_in("free", 2) == shapes_of(small.setup.model, small.microbatches));
}

TEST_CASE("what is known of a partition does not depend on threads, nor on what was priced before") {
    Small small;
    const auto partition = small.cut("dip");
    const auto expected = small.evaluated(partition);
    check_equal(small.evaluated(partition, {}, {}, on_threads(2)), expected);
    check_equal(small.evaluated(partition, {}, {}, on_threads(testing::full_or_short(8, 4))), expected);
    small.setup.store.reset();
    check_equal(small.evaluated(partition), expected);
    check_equal(small.evaluated(partition, {}, {}, on_threads(2)), expected);
}

TEST_CASE("stages that other cuts have in common cost what they cost alone") {
    Small shared;
    for (const char* name : {"megatron", "balanced", "dip", "megatron"}) {
        CAPTURE(name);
        Small alone;
        alone.setup.store.reset();
        check_equal(shared.evaluated(shared.cut(name)), alone.evaluated(alone.cut(name)));
    }
}

TEST_CASE("a second evaluation of the same lengths prices no layer, and asks for none") {
    Small small;
    const auto partition = small.cut("dip");
    static_cast<void>(small.evaluated(partition));
    const auto before = small.setup.store->statistics();
    REQUIRE(before.misses > 0);

    std::reverse(small.microbatches.begin(), small.microbatches.end());
    static_cast<void>(small.evaluated(partition));
    CHECK(small.setup.store->statistics().misses == before.misses);
    CHECK(small.setup.store->statistics().hits == before.hits);  // whole stages are remembered
}
