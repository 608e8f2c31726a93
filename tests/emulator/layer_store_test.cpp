#include "pipeweaver/emulator/layer_store.hpp"

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/base/random.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

using namespace pipeweaver;
using namespace pipeweaver::emulator;

namespace {

LayerKey key(std::int64_t length, PassKind pass = PassKind::forward) {
    return {.pass = pass, .sequences = {{{length, 0}}}};
}

PassCost cost(std::int64_t ns) {
    PassCost one;
    one.time = Duration{ns};
    return one;
}

bool equal(const PassCost& a, const PassCost& b) {
    for (std::size_t c = 0; c < operator_classes; ++c)
        for (std::size_t s = 0; s < PassCost::bases; ++s)
            if (a.shares[c][s].time != b.shares[c][s].time || a.shares[c][s].error_ns != b.shares[c][s].error_ns)
                return false;
    return a.time == b.time && a.exposed == b.exposed && a.kernels == b.kernels;
}

}  // namespace

TEST_CASE("a store gives what was put in under an equal key, and counts both ways of asking") {
    LayerStore store;
    CHECK_FALSE(store.find(key(128)));
    store.insert(key(128), cost(7));

    REQUIRE(store.find(key(128)));
    CHECK(store.find(key(128))->time == Duration{7});
    CHECK_FALSE(store.find(key(256)));
    CHECK_FALSE(store.find(key(128, PassKind::backward)));
    CHECK(store.statistics().hits == 2);
    CHECK(store.statistics().misses == 3);
    CHECK(store.statistics().entries == 1);
}

TEST_CASE("a small store forgets, stays within its size and answers all the same, from many threads") {
    constexpr std::size_t capacity = 64 * 1024;
    LayerStore store(capacity);
    constexpr std::size_t jobs = 4000;
    std::vector<char> right(jobs, 0);
    on_threads(4)(jobs, [&](std::size_t job) {
        const auto length = static_cast<std::int64_t>(job % 500);
        const auto found = store.find(key(length));
        if (!found) store.insert(key(length), cost(length));
        right[job] = !found || found->time == Duration{length} ? 1 : 0;
    });
    CHECK(std::count(right.begin(), right.end(), 1) == jobs);
    const auto statistics = store.statistics();
    CHECK(statistics.hits + statistics.misses == jobs);
    CHECK(statistics.evictions > 0);
    CHECK(statistics.bytes <= capacity);
}

TEST_CASE("costs are the same with a store, whatever it was asked before, and priced once") {
    const auto costs = std::make_shared<const costdb::CostDatabase>(costdb::CostDatabase::embedded("h100_sxm"));
    const auto setup_with = [&](bool with_store) {
        Setup setup{workloads::model("dip-vlm-s"), workloads::find_cluster("h100-sxm:16"), {.tp = 4, .pp = 4}, costs};
        if (!with_store) setup.store.reset();
        return setup;
    };
    const Setup without = setup_with(false), with = setup_with(true);
    const auto ask = [&](const Setup& setup, bool backwards) {
        LayerCosts layers(setup);
        std::vector<PassCost> all;
        std::vector<std::int64_t> lengths{64, 1000, 4096};
        if (backwards) std::reverse(lengths.begin(), lengths.end());
        for (const std::size_t module : {std::size_t{0}, std::size_t{1}})
            for (const std::int64_t length : lengths)
                for (const PassKind pass :
                     {PassKind::forward, PassKind::backward, PassKind::input_gradient, PassKind::weight_gradient})
                    all.push_back(layers.layer(module, 0, {{length, 128}, {}}, pass));
        return all;
    };
    const auto alone = ask(without, false), cold = ask(with, false);
    const auto priced = with.store->statistics().misses;
    const auto warm = ask(with, false);
    static_cast<void>(ask(with, true));

    CHECK(with.store->statistics().misses == priced);
    REQUIRE(alone.size() == cold.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
        CHECK(equal(alone[i], cold[i]));
        CHECK(equal(alone[i], warm[i]));
    }
}

TEST_CASE(
    "a pass that is no sum of its layers is priced kernel by kernel alone, one that judges by a store of its own") {
    Setup setup = testing::small_setup({.tp = 1, .pp = 1, .dp = 8});
    setup.recipe.zero = 3;
    const StageLayers all{RankId{0}, {{0, 0, 2}, {1, 0, 2}}};
    const std::vector<PassShape> shapes{{{512}}, {{2048}}};
    LayerCosts passes(setup);
    CHECK(passes.stage(all, shapes, PassKind::backward).time > Duration{0});
    CHECK(setup.store->statistics().misses == 0);
    const auto judged = [&] { return LayerCosts::usual(setup).stage(all, shapes, PassKind::backward).time; };
    const Duration cold = judged();
    CHECK(cold < passes.stage(all, shapes, PassKind::backward).time);
    const auto misses = setup.store->judging().statistics().misses;
    CHECK(misses > 0);
    CHECK(judged() == cold);
    CHECK(setup.store->judging().statistics().misses == misses);
    CHECK(setup.store->statistics().misses == 0);
}

TEST_CASE("factors of a measured run are on the passes of their model and module alone") {
    const auto costs_with = [](std::vector<costdb::PassFactor> factors) {
        costdb::Measurements points = testing::small_costs()->measurements();
        points.pass_factors = std::move(factors);
        return std::make_shared<const costdb::CostDatabase>(costdb::CostDatabase::from(std::move(points)));
    };
    const auto times = [&](std::vector<costdb::PassFactor> factors) {
        Setup setup = testing::small_setup({.tp = 1, .pp = 1, .dp = 1});
        setup.costs = costs_with(std::move(factors));
        LayerCosts costs(setup);
        std::vector<double> all;  // the encoder's forward and backward, and the language model's
        for (const std::size_t module : {0U, 1U})
            for (const PassKind pass : {PassKind::forward, PassKind::backward})
                all.push_back(static_cast<double>(costs.layer(module, 0, {{2048}}, pass).time.count()));
        return all;
    };
    const auto plain = times({});
    const auto fitted = times({{"small", "vit", false, 1'500'000, 5},
                               {"small", "llm", true, 2'000'000, 5},
                               {"other", "vit", true, 3'000'000, 5}});
    const std::vector<double> factors{1.5, 1, 1, 2};
    for (std::size_t i = 0; i < factors.size(); ++i)
        CHECK(fitted[i] / plain[i] == doctest::Approx(factors[i]).epsilon(0.001));
}
