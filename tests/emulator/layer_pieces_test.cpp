// Pieces of a layer's time and of a step's, worked by hand.
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/layer_times.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/emulator/time_shares.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::emulator;

namespace {

Duration exposed_traffic(const PassCost& cost) {
    Duration sum{};
    for (const Stream stream : {Stream::tensor, Stream::context, Stream::data})
        sum += cost.exposed[static_cast<std::size_t>(stream)];
    return sum;
}

Duration of_class(const PassCost& cost, OperatorClass kind) {
    Duration sum{};
    for (std::size_t basis = 0; basis < PassCost::bases; ++basis)
        sum += cost.shares[static_cast<std::size_t>(kind)][basis].time;
    return sum;
}

// The forward of the last layer of a model with experts, whose host takes so long.
double with_experts_ns(Duration layer, Duration expert_layer) {
    testing::SmallWorkload setup({.tp = 1, .pp = 1, .dp = 8});
    setup.model = workloads::find_model("deepseek-vl2");
    setup.recipe.layer = layer;
    setup.recipe.expert_layer = expert_layer;
    LayerCosts costs(setup);
    const std::size_t backbone = setup.model.modules.size() - 1;
    const auto last = setup.model.modules[backbone].architecture.layers - 1;
    return static_cast<double>(costs.layer(backbone, last, {{4096}}, PassKind::forward).time.count());
}

}  // namespace

TEST_CASE("a layer's exposed traffic is what its forward and its backward wait for") {
    testing::SmallWorkload setup({.tp = 2, .pp = 2, .dp = 1});
    const PassShape shape{{1024}};
    LayerCosts costs(setup);
    const Duration forward = exposed_traffic(costs.layer(1, 0, shape, PassKind::forward));
    const Duration backward = exposed_traffic(costs.layer(1, 0, shape, PassKind::backward));
    REQUIRE(forward > Duration{});
    REQUIRE(backward > Duration{});
    const std::vector<std::vector<PassShape>> microbatches{{{}, shape}, {{}, shape}};
    const auto layers = layer_times(setup, microbatches);
    const auto first = static_cast<std::size_t>(setup.model.modules[0].architecture.layers);
    CHECK(layers[first].exposed_traffic == forward + backward);
    CHECK(layers[first].forward == costs.layer(1, 0, shape, PassKind::forward).time);
    CHECK(layers[first].backward == costs.layer(1, 0, shape, PassKind::backward).time);
}

TEST_CASE("a layer with experts takes the root of the squares of the host's launches and waits, and its operators'") {
    using std::chrono::milliseconds;
    const double own = with_experts_ns({}, Duration{1});
    // A forward has 1 / 2.3 of the waits of a microbatch: 10 of 23 ms.
    CHECK(with_experts_ns({}, milliseconds(23)) == doctest::Approx(std::hypot(own, 10e6)).epsilon(1e-4));
    CHECK(with_experts_ns(milliseconds(5), milliseconds(23)) == doctest::Approx(std::hypot(own, 15e6)).epsilon(1e-4));
    CHECK(with_experts_ns(milliseconds(20), milliseconds(23)) == doctest::Approx(std::hypot(own, 30e6)).epsilon(1e-4));
}

TEST_CASE("under core attention attention alone runs again, under selective recomputation memory-bound kernels alone") {
    testing::SmallWorkload setup({.tp = 2, .pp = 2, .dp = 1});
    LayerCosts costs(setup);
    const std::vector<PassShape> shapes{{}, {{1024}}};
    const PassCost layer = costs.layer(1, 0, shapes[1], PassKind::forward);
    const StageLayers two{RankId{0}, {{1, 0, 2}}};
    const PassCost core = costs.blocks_forward(two, shapes, Recompute::core_attention);
    const PassCost selective = costs.blocks_forward(two, shapes, Recompute::selective);
    CHECK(of_class(core, OperatorClass::attention) == 2 * of_class(layer, OperatorClass::attention));
    CHECK(of_class(selective, OperatorClass::elementwise) > Duration{});
    for (std::size_t c = 0; c < operator_classes; ++c) {
        const auto kind = static_cast<OperatorClass>(c);
        CAPTURE(name_of(kind));
        if (kind != OperatorClass::attention) CHECK(of_class(core, kind) == Duration{});
        if (kind != OperatorClass::elementwise) CHECK(of_class(selective, kind) == Duration{});
    }
    const PassCost full = costs.blocks_forward(two, shapes, Recompute::full);
    CHECK(full.time == 2 * layer.time);
}

TEST_CASE("every second product runs again beside memory-bound kernels, without attention and traffic") {
    testing::SmallWorkload setup({.tp = 2, .pp = 2, .dp = 1});
    LayerCosts costs(setup);
    const std::vector<PassShape> shapes{{}, {{1024}}};
    const PassCost layer = costs.layer(1, 0, shapes[1], PassKind::forward);
    const StageLayers one{RankId{0}, {{1, 0, 1}}};
    const PassCost selective = costs.blocks_forward(one, shapes, Recompute::selective);
    const PassCost products = costs.blocks_forward(one, shapes, Recompute::second_products);
    CHECK(of_class(products, OperatorClass::elementwise) == of_class(selective, OperatorClass::elementwise));
    CHECK(of_class(products, OperatorClass::gemm) > Duration{});
    CHECK(of_class(products, OperatorClass::gemm) < of_class(layer, OperatorClass::gemm));
    CHECK(of_class(products, OperatorClass::attention) == Duration{});
    CHECK(of_class(products, OperatorClass::collective) == Duration{});
}

TEST_CASE("shares of time sum to 1, each in proportion, and no time has none") {
    TimeShares shares;
    shares.by[0][0] = 3;
    shares.by[2][1] = 4;
    shares.by[4][1] = 1;
    TimeShares more;
    more.by[2][1] = 2;
    shares += more;
    normalise(shares);
    CHECK(shares.by[0][0] == doctest::Approx(0.3));
    CHECK(shares.by[2][1] == doctest::Approx(0.6));
    CHECK(shares.by[4][1] == doctest::Approx(0.1));
    CHECK(shares.of(static_cast<costdb::Basis>(1)) == doctest::Approx(0.7));
    TimeShares none;
    normalise(none);
    CHECK(none.by[0][0] == 0);
}

TEST_CASE("what is kept free of a GPU's memory is said where it is anything") {
    CHECK(kept_free({}).empty());
    CHECK(kept_free({30'000}) == " with 3 % kept free");
    CHECK(kept_free({25'500}) == " with 2.55 % kept free");
}
