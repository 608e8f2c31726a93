// One training on two groups of GPUs: shares against all that there are, and steps of the small model.
#include "pipeweaver/planner/mixed.hpp"

#include "pipeweaver/base/random.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

// A group of some replicas: each takes so long for a microbatch, and for what comes once.
struct DrawnGroup {
    std::size_t replicas = 1;
    Duration each{}, once{};
    std::size_t most = 0;  // of more it runs none

    std::optional<Duration> step(std::size_t count) const {
        if (count > most) return {};
        return once + static_cast<std::int64_t>((count + replicas - 1) / replicas) * each;
    }
};

DrawnGroup drawn_group(Random& random, std::size_t microbatches) {
    DrawnGroup group;
    group.replicas = 1 + static_cast<std::size_t>(random.below(6));
    group.each = Duration{static_cast<std::int64_t>(1 + random.below(1'000))};
    group.once = Duration{static_cast<std::int64_t>(random.below(3'000))};
    group.most = random.below(4) == 0 ? static_cast<std::size_t>(random.below(microbatches + 1)) : microbatches;
    return group;
}

TEST_CASE("shares are the best of all on 200 random jobs, and no step is longer than the fast group's alone") {
    std::int64_t shared_out = 0, alone = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const auto microbatches = static_cast<std::size_t>(2 + random.below(60));
        const auto fast = drawn_group(random, microbatches), slow = drawn_group(random, microbatches);
        const Duration exchange{static_cast<std::int64_t>(random.below(2'000))};
        std::optional<Duration> least;
        for (std::size_t count = fast.replicas; count + slow.replicas <= microbatches; ++count) {
            const auto one = fast.step(count), other = slow.step(microbatches - count);
            if (one && other && (!least || std::max(*one, *other) < *least)) least = std::max(*one, *other);
        }
        const auto found = share_out(
            microbatches, fast.replicas, slow.replicas, [&](std::size_t count) { return fast.step(count); },
            [&](std::size_t count) { return slow.step(count); });
        REQUIRE(found.has_value() == least.has_value());
        if (found) CHECK(found->slower == *least);

        MixedPlan plan;
        if (const auto step = fast.step(microbatches)) plan.first = GroupStep{.step = *step};
        if (found) plan.both = MixedStep{.exchange = exchange, .step = found->slower + exchange};
        if (plan.best() == MixedPlan::Best::both) {
            ++shared_out;
            if (plan.first) CHECK(plan.both->step < plan.first->step);
        } else {
            ++alone;
            CHECK((plan.best() == MixedPlan::Best::first) == plan.first.has_value());
        }
    }
    CHECK(shared_out > 50);
    CHECK(alone > 20);
}

// On so many replicas of 4 ranks of 2 GPUs.
KindOfGpus small_kind(std::int64_t dp) { return {{testing::small_request(dp).job}}; }

Batch small_batch_of(std::size_t microbatches) {
    Batch batch = testing::small_request(1, std::vector<int>(microbatches, 2)).batch;
    return batch;
}

TEST_CASE("a group of half the GPUs gets a third of the microbatches") {
    const auto plan =
        plan_mixed(small_kind(2), small_kind(1), small_batch_of(24), Bandwidth{1'000'000'000'000'000}, in_order);
    REQUIRE(plan.first.has_value());
    REQUIRE(plan.second.has_value());
    REQUIRE(plan.both.has_value());
    CHECK(plan.first->microbatches == 24);
    CHECK(plan.both->first.microbatches == 16);
    CHECK(plan.both->second.microbatches == 8);
    CHECK(plan.both->step >= std::max(plan.both->first.step, plan.both->second.step));
    CHECK(plan.both->step < plan.first->step);
    CHECK(plan.best() == MixedPlan::Best::both);
}

TEST_CASE("of several layouts each share has the fastest") {
    const auto batch = small_batch_of(8);
    const Bandwidth wide{1'000'000'000'000'000};
    auto several = small_kind(1);
    Job wider = several.jobs.front();
    wider.setup = std::make_shared<emulator::Setup>(testing::small_setup({.tp = 2, .pp = 2, .dp = 2}));
    const auto deep = plan_mixed(several, std::nullopt, batch, wide, in_order);
    const auto wide_alone = plan_mixed(KindOfGpus{{wider}}, std::nullopt, batch, wide, in_order);
    several.jobs.push_back(wider);
    const auto both = plan_mixed(several, std::nullopt, batch, wide, in_order);
    CHECK(both.first.value().step == std::min(deep.first.value().step, wide_alone.first.value().step));
}

TEST_CASE("behind a slow bridge the fast group is alone") {
    const auto plan = plan_mixed(small_kind(2), small_kind(1), small_batch_of(12), Bandwidth{1'000'000}, in_order);
    REQUIRE(plan.both.has_value());
    // Weights of the small model in the recipe's gradients, through a megabyte a second.
    const auto setup = testing::small_setup({.tp = 2, .pp = 4, .dp = 1});
    std::int64_t parameters = workloads::projector_parameters(setup.model.edges[0]);
    for (const auto& module : setup.model.modules) parameters += workloads::all_parameters(module.architecture);
    CHECK(gradients_of(setup) == setup.recipe.state.gradient * Bytes{parameters});
    CHECK(plan.both->exchange == gradients_of(setup) / Bandwidth{1'000'000});
    CHECK(plan.best() == MixedPlan::Best::first);
}

TEST_CASE("a group that cannot hold the model leaves the step to the other") {
    const auto plan = plan_mixed(std::nullopt, small_kind(1), small_batch_of(4), Bandwidth{1}, in_order);
    CHECK_FALSE(plan.both.has_value());
    CHECK(plan.best() == MixedPlan::Best::second);
    CHECK(plan_mixed(std::nullopt, std::nullopt, small_batch_of(4), Bandwidth{1}, in_order).best() ==
          MixedPlan::Best::none);
}

TEST_CASE("fewer microbatches than replicas are shared out to nobody") {
    const auto plan = plan_mixed(small_kind(2), small_kind(2), small_batch_of(3), Bandwidth{1}, in_order);
    CHECK(plan.first.has_value());
    CHECK_FALSE(plan.both.has_value());
}

TEST_CASE("a bridge is as wide as the narrower side") {
    workloads::Cluster one, other;
    one.gpus = 17;  // three nodes of eight
    one.network = {100};
    other.gpus = 8;
    other.network = {200};
    CHECK(bridge_of(one, other).bytes_per_second == 200);
    one.gpus_per_rack = 8;  // of which a quarter of 300 comes out
    one.oversubscription = 4;
    CHECK(bridge_of(one, other).bytes_per_second == 75);
    other.network = {};
    CHECK(bridge_of(one, other).bytes_per_second == 0);
}

}  // namespace
