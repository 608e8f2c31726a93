// A pipeline on two kinds of GPU: cuts against all that there are, and steps of the small model.
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/partition/kinds.hpp"
#include "pipeweaver/planner/emulate.hpp"
#include "pipeweaver/planner/mixed.hpp"
#include "tests/support/effort.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::planner;

namespace {

constexpr Bandwidth wide{1'000'000'000'000'000};

// Up to 4 stages of up to 8 layers; in half of the rows layers take room.
std::vector<partition::StageRow> drawn_rows(Random& random) {
    const auto stages = static_cast<std::size_t>(1 + random.below(4));
    const std::size_t layers = stages + static_cast<std::size_t>(random.below(9 - stages));
    const bool weighs = random.below(2) == 0;
    std::vector<partition::StageRow> rows(stages);
    for (auto& row : rows) {
        row.room = Bytes{static_cast<std::int64_t>(10 + random.below(40))};
        for (std::size_t i = 0; i < layers; ++i) {
            row.times.push_back(static_cast<std::int64_t>(1 + random.below(20)));
            if (weighs) row.bytes.push_back(Bytes{static_cast<std::int64_t>(1 + random.below(12))});
        }
    }
    return rows;
}

// The longest stage and the squares of all; none: it does not fit.
using WorthOfCut = std::pair<std::int64_t, std::int64_t>;

std::optional<WorthOfCut> worth_of(const std::vector<partition::StageRow>& rows, const std::vector<std::size_t>& ends) {
    WorthOfCut worth{};
    std::size_t begin = 0;
    for (std::size_t s = 0; s < rows.size(); begin = ends[s++]) {
        std::int64_t time = 0;
        Bytes bytes;
        for (std::size_t i = begin; i < ends[s]; ++i) {
            time += rows[s].times[i];
            if (!rows[s].bytes.empty()) bytes += rows[s].bytes[i];
        }
        if (bytes > rows[s].room) return std::nullopt;
        worth = {std::max(worth.first, time), worth.second + time * time};
    }
    return worth;
}

void best_of_all(const std::vector<partition::StageRow>& rows, std::vector<std::size_t>& ends,
                 std::optional<WorthOfCut>& best) {
    const std::size_t layers = rows.front().times.size(), left = rows.size() - ends.size();
    if (left == 0) {
        const auto worth = worth_of(rows, ends);
        if (worth && (!best || *worth < *best)) best = worth;
        return;
    }
    const std::size_t begin = ends.empty() ? 0 : ends.back();
    for (std::size_t end = left == 1 ? layers : begin + 1; end + left - 1 <= layers; ++end) {
        ends.push_back(end);
        best_of_all(rows, ends, best);
        ends.pop_back();
    }
}

// Read once.
std::shared_ptr<const costdb::CostDatabase> costs_of(const std::string& device) {
    static std::map<std::string, std::shared_ptr<const costdb::CostDatabase>> known;
    auto& costs = known[device];
    if (!costs) costs = std::make_shared<const costdb::CostDatabase>(costdb::CostDatabase::embedded(device));
    return costs;
}

// On so many GPUs of a kind, each with the whole model.
emulator::Setup on_kind(const std::string& device, std::int64_t gpus) {
    auto setup = testing::small_setup({.tp = 1, .pp = 1, .dp = gpus});
    setup.cluster.device = device;
    setup.costs = costs_of(device);
    return setup;
}

KindOfGpus alone_on(const emulator::Setup& setup) {
    Job job;
    job.setup = std::make_shared<const emulator::Setup>(setup);
    return {{job}};
}

Batch drawn_batch(Random& random, std::size_t microbatches) {
    std::vector<int> images(microbatches);
    for (int& count : images) count = static_cast<int>(random.below(9));
    return testing::small_request(1, images).batch;
}

std::int64_t layers_in(const StagesOfKind& stages) {
    return std::accumulate(stages.layers.begin(), stages.layers.end(), std::int64_t{0});
}

}  // namespace

TEST_CASE("rows whose layers take other times on each stage are cut as the best of all cuts") {
    std::int64_t fitting = 0;
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const auto rows = drawn_rows(random);
        std::optional<WorthOfCut> best;
        std::vector<std::size_t> ends;
        best_of_all(rows, ends, best);
        const auto found = partition::cut_by_stage(rows);
        REQUIRE(found.empty() == !best.has_value());
        if (!best) continue;
        ++fitting;
        CHECK(worth_of(rows, found) == best);
    }
    CHECK(fitting > 150);
    CHECK(fitting < 300);
}

TEST_CASE("every cut is there once") {
    const auto setup = testing::small_setup({.tp = 1, .pp = 3, .dp = 1});
    CHECK(partition::every_cut(setup, 100).size() == 78);  // 13 over 2: behind two of its first 13 layers
    CHECK(partition::every_cut(setup, 77).empty());
}

TEST_CASE("on ranks of one kind a step is what emulate says") {
    auto request = testing::small_request(1);
    testing::change_setup(request, [](emulator::Setup& setup) { setup.cluster.network = {}; });
    EmulationRequest asked;
    asked.batch = request.batch;
    for (const auto& cut : partition::every_cut(*request.job.setup, 286)) {
        if (cut.chains.front().stages.front().parts.size() < 2) continue;  // few are enough
        asked.job = testing::on_partition(request, cut).job;
        const auto emulated = emulate(asked, in_order);
        const auto found =
            step_of_kinds({request.job.setup, 1}, {request.job.setup, 3}, cut, {request.batch.microbatches}, wide);
        REQUIRE(found);
        CHECK(found->step == emulated.step);
        CHECK(std::max(found->first.peak, found->last.peak) == fullest_peak(emulated));
        CHECK(layers_in(found->first) + layers_in(found->last) == 14);
    }
}

TEST_CASE("layers are shared out as in the best of all cuts, and the faster kind has more") {
    const auto fast = on_kind("h100_sxm", 1), slow = on_kind("a100_sxm", 1);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const Batch batch = drawn_batch(random, 4);
        const Bandwidth bridge = seed == 0 ? wide : Bandwidth{1'000'000'000};
        const auto plan = plan_pipeline_of_kinds(fast, slow, batch, bridge, in_order);
        REQUIRE(plan);
        const auto in_pipeline = [](const emulator::Setup& setup) {
            auto two = std::make_shared<emulator::Setup>(with_layout(setup, {.tp = 1, .pp = 2, .dp = 1}));
            two->cluster.gpus = 2;
            return KindInPipeline{two, 1};
        };
        std::optional<Duration> best;
        for (const auto& cut : partition::every_cut(*in_pipeline(fast).setup, 20))
            for (const bool turned : {false, true}) {
                const auto step = step_of_kinds(in_pipeline(turned ? slow : fast), in_pipeline(turned ? fast : slow),
                                                cut, {batch.microbatches}, bridge);
                if (step && (!best || step->step < *best)) best = step->step;
            }
        REQUIRE(best);
        CHECK(plan->step == *best);
        const auto backwards = plan_pipeline_of_kinds(slow, fast, batch, bridge, in_order);
        REQUIRE(backwards);
        CHECK(backwards->step == plan->step);
    }
    const auto text =
        plan_pipeline_of_kinds(fast, slow, testing::small_request(1, std::vector<int>(8, 0)).batch, wide, in_order);
    REQUIRE(text);
    REQUIRE(text->turned);  // the six layers of the encoder, which has no work, lie first
    CHECK(layers_in(text->one) > layers_in(text->other) - 6);
}

TEST_CASE("a kind with little memory has no more than fits, and a slow bridge makes no step shorter") {
    const auto fast = on_kind("h100_sxm", 2);
    auto small = on_kind("a100_sxm", 2);
    const Batch batch = testing::small_request(1, std::vector<int>(6, 4)).batch;
    const auto free = plan_pipeline_of_kinds(fast, small, batch, wide, in_order);
    REQUIRE(free);
    const auto slower = plan_pipeline_of_kinds(fast, small, batch, {100'000'000}, in_order);
    REQUIRE(slower);
    CHECK(slower->step > free->step);
    small.headroom = {970'000};  // 2.2 GB are left
    const Bytes room = emulator::capacity_of(small);
    REQUIRE(free->other.peak > room);
    const auto full = plan_pipeline_of_kinds(fast, small, batch, wide, in_order);
    REQUIRE(full);
    CHECK(full->other.peak <= room);
    CHECK(full->step >= free->step);
    small.headroom = {999'999};
    CHECK_FALSE(plan_pipeline_of_kinds(fast, small, batch, wide, in_order));
}

TEST_CASE("a cut on which 1F1B comes to a stop has no step") {
    const auto one = std::make_shared<const emulator::Setup>(testing::small_setup({.tp = 1, .pp = 3, .dp = 1}));
    for (const auto& cut : partition::every_cut(*one, 78)) {
        if (cut.chains.front().stages[1].parts.back().module != 0) continue;
        // Two stages of the encoder alone, which the first microbatch does not pass: the last stage has one forward
        // fewer before its first backward than they wait for.
        const auto step = [&](const std::vector<int>& images) {
            return step_of_kinds({one, 1}, {one, 2}, cut, {testing::small_request(1, images).batch.microbatches}, wide);
        };
        CHECK_FALSE(step({0, 1, 1, 1}));
        CHECK(step({1, 1, 1, 1}));
    }
}

TEST_CASE("with a pipeline on both kinds, too, none of 200 random jobs takes longer than on the fast kind alone" *
          testing::on_release_libraries()) {
    std::int64_t pipelines = 0, alone = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        CAPTURE(seed);
        Random random(seed);
        const auto fast = on_kind("h100_sxm", static_cast<std::int64_t>(1 + random.below(2)));
        const auto slow = on_kind("a100_sxm", static_cast<std::int64_t>(1 + random.below(2)));
        const Batch batch = drawn_batch(random, static_cast<std::size_t>(2 + random.below(3)));
        Bandwidth bridge{1'000'000};  // to a terabyte a second
        for (std::uint64_t tenfold = random.below(7); tenfold > 0; --tenfold) bridge.bytes_per_second *= 10;
        auto plan = plan_mixed(alone_on(fast), alone_on(slow), batch, bridge, in_order);
        plan.pipeline = plan_pipeline_of_kinds(fast, slow, batch, bridge, in_order);
        REQUIRE(plan.first);
        if (plan.best() == MixedPlan::Best::pipeline) {
            ++pipelines;
            CHECK(plan.pipeline->step < plan.first->step);
            if (plan.both) CHECK(plan.pipeline->step < plan.both->step);
        }
        if (plan.best() == MixedPlan::Best::first) {
            ++alone;
            if (plan.pipeline) CHECK(plan.pipeline->step >= plan.first->step);
        }
    }
    CHECK(pipelines > 20);
    CHECK(alone > 20);
}

TEST_CASE("a plan has the pipeline where it is the shortest alone") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Random random(seed);
        const auto drawn = [&] { return Duration{static_cast<std::int64_t>(1 + random.below(20))}; };
        MixedPlan plan;
        plan.first = GroupStep{.step = drawn()};
        plan.both = MixedStep{.step = drawn()};
        plan.pipeline.emplace();
        plan.pipeline->step = drawn();
        const Duration without = plan.first->step;
        const Duration taken = plan.best() == MixedPlan::Best::first  ? plan.first->step
                               : plan.best() == MixedPlan::Best::both ? plan.both->step
                                                                      : plan.pipeline->step;
        CHECK(taken == std::min({without, plan.both->step, plan.pipeline->step}));
        if (plan.pipeline->step >= without) CHECK(plan.best() != MixedPlan::Best::pipeline);
    }
}
