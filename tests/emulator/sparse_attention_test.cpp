// Pairs of a diffusion transformer's attention that are left out, and heads exchanged beside a ring of keys.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/queries.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using testing::queries;

namespace {

const PassShape clip{{8192}};

workloads::Architecture dit(std::vector<double> sparsity) {
    auto network = testing::small_network(workloads::ModuleKind::diffusion_transformer, 4, 2048);
    network.attention.sparsity = std::move(sparsity);
    return network;
}

Setup setup_of(std::vector<double> sparsity, const Layout& layout, std::int64_t ulysses = 0) {
    Setup setup = testing::small_setup(layout);
    setup.model.modules = {{"dit", dit(std::move(sparsity)), workloads::PassUnit::microbatch, {}, true}};
    setup.model.modules.front().ulysses = ulysses;
    setup.model.edges.clear();
    return setup;
}

Duration time_of(const Setup& setup, const LayerRange& range, PassKind pass, const PassShape& shape = clip) {
    LayerCosts costs(setup);
    return costs.layers(range, shape, pass).time;
}

Duration both(const Setup& setup, const LayerRange& range) {
    return time_of(setup, range, PassKind::forward) + time_of(setup, range, PassKind::backward);
}

std::vector<Operator> block(std::vector<double> sparsity, const Layout& layout, PassKind pass) {
    return layer_operators(dit(std::move(sparsity)), clip, layout, pass);
}

std::vector<std::string> names_of(const std::vector<Operator>& operators) {
    std::vector<std::string> all;
    for (const Operator& op : operators) all.emplace_back(op.name);
    return all;
}

// Step-Video's transformer on four GPUs, as its README ran it: one forward over the latents of a clip.
double forward_of_clip(std::int64_t positions, std::int64_t gpus = 4) {
    Setup setup = testing::small_setup({.tp = gpus, .pp = 1, .dp = 1});
    setup.model = workloads::find_model("step-video-t2v-dit");
    return static_cast<double>(time_of(setup, {0, 0, 48}, PassKind::forward, {{positions}}).count());
}

// By that share of itself; doctest's own would be of itself and 1.
doctest::Approx within(double value, double share) { return doctest::Approx(value).epsilon(share).scale(0); }

}  // namespace

TEST_CASE("nothing left out is dense attention, operator by operator and to the nanosecond") {
    for (const PassKind pass : {PassKind::forward, PassKind::backward}) {
        CHECK(names_of(block({0}, {}, pass)) == names_of(block({}, {}, pass)));
        const LayerRange all{0, 0, 4};
        CHECK(time_of(setup_of({0, 0, 0, 0}, {}), all, pass) == time_of(setup_of({}, {}), all, pass));
    }
    CHECK(workloads::layer_flops(dit({0}), 0, 100, 5000) == workloads::layer_flops(dit({}), 0, 100, 5000));
}

TEST_CASE("a sparse layer works out the pairs that are left, and finds them in its forward") {
    const auto forward = queries<PackedAttention>(block({0.75}, {}, PassKind::forward));
    REQUIRE(forward.size() == 2);
    // Of queries and keys of rank 16 the first of two products of heads of 128.
    CHECK(forward[0].density == 16. / 256);
    CHECK(forward[1].density == 0.25);
    const auto backward = queries<PackedAttention>(block({0.75}, {}, PassKind::backward));
    REQUIRE(backward.size() == 1);
    CHECK(backward[0].density == 0.25);
    const auto gemms = queries<costdb::Gemm>(block({0.75}, {.tp = 2}, PassKind::forward));
    CHECK(std::any_of(gemms.begin(), gemms.end(), [](const auto& one) { return one.n == 2 * 8 * 16; }));
    const auto& costs = *testing::small_costs();
    const double whole = static_cast<double>(
        queries<PackedAttention>(block({}, {}, PassKind::backward))[0].cost(costs).duration.count());
    CHECK(static_cast<double>(backward[0].cost(costs).duration.count()) == doctest::Approx(whole / 4));
    // 4 FLOPs a pair, head and its values: a quarter of them.
    const double pairs = 5000, dense = workloads::layer_flops(dit({}), 0, 100, pairs);
    CHECK(dense - workloads::layer_flops(dit({0.75}), 0, 100, pairs) == doctest::Approx(0.75 * 4 * 2048 * pairs));
}

TEST_CASE("layers take what their own sparsity makes of them") {
    const LayerRange one{0, 0, 1}, all{0, 0, 4};
    const Duration dense = both(setup_of({}, {}), one), half = both(setup_of({0.5}, {}), one),
                   sparse = both(setup_of({0.9}, {}), one);
    CHECK(sparse < half);
    CHECK(both(setup_of({0, 0.5, 0.9, 0.9}, {}), all) == dense + half + 2 * sparse);
    CHECK(both(setup_of({0.9}, {}), all) == 4 * sparse);
}

TEST_CASE("a layer has its own sparsity, or that of all") {
    CHECK(workloads::sparsity_of(dit({0.5}), 3) == 0.5);
    CHECK(workloads::sparsity_of(dit({0, 0.25, 0.5, 0.75}), 3) == 0.75);
    CHECK(workloads::sparsity_of(dit({}), 3) == 0);
}

TEST_CASE("heads exchanged among all GPUs or none are all-to-alls and the ring") {
    for (const PassKind pass : {PassKind::forward, PassKind::backward}) {
        const LayerRange one{0, 0, 1};
        const Layout exchanged{.cp = 4}, ring{.cp = 4, .context = ContextParallel::ring};
        CHECK(time_of(setup_of({}, ring, 4), one, pass) == time_of(setup_of({}, exchanged), one, pass));
        CHECK(time_of(setup_of({}, exchanged, 1), one, pass) == time_of(setup_of({}, ring), one, pass));
    }
}

TEST_CASE("between the two heads are exchanged inside a group, and keys go round among groups") {
    Layout layout{.cp = 4};
    layout.ulysses = 2;
    const auto forward = block({}, layout, PassKind::forward);
    const auto attentions = queries<PackedAttention>(forward);
    // Two steps of half of the 16 heads over half of the sequence.
    REQUIRE(attentions.size() == 2);
    for (const auto& one : attentions) {
        CHECK(one.lengths == std::vector<std::int64_t>{4096});
        CHECK(one.shape.q_heads == 8);
    }
    const auto sends = queries<costdb::PointToPoint>(forward);
    REQUIRE(sends.size() == 1);
    // Keys and values of 4096 positions and 8 heads of 128, two bytes each.
    CHECK(sends[0].message == Bytes{2 * 4096 * 8 * (128 + 128)});
    const auto exchanges = queries<costdb::Collective>(forward);
    REQUIRE(exchanges.size() == 2);
    // Queries, keys and values of 2048 positions and 16 heads, then the outputs.
    CHECK((exchanges[0].gpus == 2 && exchanges[0].message == Bytes{2 * 2048 * 3 * 2048}));
    CHECK((exchanges[1].gpus == 2 && exchanges[1].message == Bytes{2 * 2048 * 2048}));
}

TEST_CASE("a module's heads are shared out evenly among the GPUs that exchange them, or what would be is told") {
    auto model = setup_of({}, {.cp = 4}, 2).model;
    CHECK(!conflict({.cp = 4}, model));
    CHECK(!conflict({.cp = 4, .context = ContextParallel::ring}, model));
    model.modules[0].ulysses = 3;
    const auto why = conflict({.cp = 4}, model);
    REQUIRE(why);
    CHECK(
        why->message ==
        "--module-context: 3 GPUs that exchange heads of module 'dit' must divide --cp 4, and with tp 1 its 16 heads; "
        "allowed are 1x4, 2x2, 4x1");
}

TEST_CASE("Step-Video's clips take as much longer than each other as they were published to") {
    // 204 frames of 768 x 768 and 544 x 992 pixels, 136 of the latter: 36 or 24 latent frames of 16 x 16 pixels
    // (stepfun-ai/Step-Video-T2V README, 4 GPUs whose kind it does not say, with flash attention).
    const double largest = forward_of_clip(36 * 48 * 48);
    CHECK(forward_of_clip(36 * 34 * 62) / largest == within(743. / 860, 0.1));
    CHECK(forward_of_clip(24 * 34 * 62) / largest == within(408. / 860, 0.1));
}

TEST_CASE("at 520,000 positions attention takes nearly all of a layer") {
    Setup setup = testing::small_setup({.cp = 8});
    setup.model = workloads::find_model("step-video-t2v-dit");
    LayerCosts costs(setup);
    PassCost sum;
    for (const PassKind pass : {PassKind::forward, PassKind::backward})
        sum += costs.layers({0, 0, 1}, {{520'000}}, pass);
    Duration attention{};
    for (const auto& one : sum.shares[static_cast<std::size_t>(OperatorClass::attention)]) attention += one.time;
    // "up to 95 %" (DSV, arXiv 2502.07590).
    CHECK(static_cast<double>(attention.count()) / static_cast<double>(sum.time.count()) == within(0.95, 0.1));
}
