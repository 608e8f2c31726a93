#include "pipeweaver/emulator/operators.hpp"

#include "emulator/pricing/price.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/queries.hpp"
#include "tests/support/small_model.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using testing::queries;

namespace {

const PassShape shape{{100, 28}};  // 128 positions
const Layout tp4{.tp = 4, .pp = 1, .dp = 1};

Bytes traffic(const std::vector<Operator>& operators) {
    Bytes sum;
    for (const auto& elementwise : queries<costdb::Elementwise>(operators)) sum += elementwise.traffic;
    return sum;
}

std::size_t collectives(const std::vector<Operator>& operators, costdb::CollectiveKind kind) {
    const auto all = queries<costdb::Collective>(operators);
    return static_cast<std::size_t>(
        std::count_if(all.begin(), all.end(), [&](const costdb::Collective& one) { return one.kind == kind; }));
}

}  // namespace

TEST_CASE("a gated layer's GEMMs have the shapes of Megatron's column and row parallel matrices") {
    const auto network = testing::small_network(workloads::ModuleKind::language_model, 2, 2048);  // 16 heads, ffn 8192
    const auto found = queries<costdb::Gemm>(layer_operators(network, shape, tp4, PassKind::forward));

    REQUIRE(found.size() == 4);
    CHECK((found[0].m == 128 && found[0].n == 3 * 2048 / 4 && found[0].k == 2048));
    CHECK((found[1].m == 128 && found[1].n == 2048 && found[1].k == 2048 / 4));
    CHECK((found[2].m == 128 && found[2].n == 2 * 8192 / 4 && found[2].k == 2048));
    CHECK((found[3].m == 128 && found[3].n == 2048 && found[3].k == 8192 / 4));
}

TEST_CASE("GEMM and attention FLOPs of a layer's operators are those that the counts say") {
    const auto network = testing::small_network(workloads::ModuleKind::language_model, 2, 2048);
    double flops = 0;
    const auto operators = layer_operators(network, shape, tp4, PassKind::forward);
    for (const auto& gemm : queries<costdb::Gemm>(operators))
        flops += 2.0 * static_cast<double>(gemm.m * gemm.n * gemm.k);
    for (const auto& attention : queries<PackedAttention>(operators))
        flops += 4.0 * static_cast<double>(attention.shape.q_heads * attention.shape.head_dim) *
                 workloads::attention_pairs(network, attention.lengths);
    CHECK(4 * flops ==
          doctest::Approx(workloads::layer_flops(network, 0, 128, workloads::attention_pairs(network, shape.lengths))));
}

TEST_CASE("memory-bound traffic is the documented sum, and 1.6 times that backward") {
    const auto network = testing::small_network(workloads::ModuleKind::language_model, 2, 2048);
    const std::int64_t m = 128, h = 2048, t = 4, heads_width = 2 * 2048, up_and_down = 3 * 8192;
    const std::int64_t forward = (20 * m * h + 4 * m * heads_width + 2 * m * up_and_down) / t;

    CHECK(traffic(layer_operators(network, shape, tp4, PassKind::forward)) == Bytes{forward});
    CHECK(traffic(layer_operators(network, shape, tp4, PassKind::backward)) == Bytes{forward * 16 / 10});
    // Of W what its two norms read again: inputs and gradients.
    CHECK(traffic(layer_operators(network, shape, tp4, PassKind::weight_gradient)) == Bytes{2 * 4 * m * h / t});
    const Execution once{.norms_again = false};
    CHECK(traffic(layer_operators(network, shape, tp4, PassKind::weight_gradient, 0, once)) == 0_B);
}

TEST_CASE("sequence parallelism gathers and scatters twice forward, and gathers inputs again for weight gradients") {
    const auto network = testing::small_network(workloads::ModuleKind::language_model, 2, 2048);
    using enum costdb::CollectiveKind;
    const auto count = [&](PassKind pass, costdb::CollectiveKind kind) {
        return collectives(layer_operators(network, shape, tp4, pass), kind);
    };
    CHECK((count(PassKind::forward, all_gather) == 2 && count(PassKind::forward, reduce_scatter) == 2));
    CHECK((count(PassKind::backward, all_gather) == 4 && count(PassKind::backward, reduce_scatter) == 2));
    CHECK((count(PassKind::weight_gradient, all_gather) == 2 && count(PassKind::weight_gradient, reduce_scatter) == 0));
    CHECK(collectives(layer_operators(network, shape, Layout{}, PassKind::forward), all_gather) == 0);
}

TEST_CASE("input and weight gradient together cost about a full backward") {
    const auto costs = costdb::CostDatabase::embedded("h100_sxm");
    const auto network = testing::small_network(workloads::ModuleKind::language_model, 2, 2048);
    const PassShape large{{4096, 4096}};
    const auto time = [&](PassKind pass) {
        const auto cost = price(layer_operators(network, large, tp4, pass), costs, in_situ_factors("h100_sxm"));
        return static_cast<double>(cost.total().count());
    };
    const double backward = time(PassKind::backward);
    CHECK(time(PassKind::input_gradient) + time(PassKind::weight_gradient) == doctest::Approx(backward).epsilon(0.02));
    CHECK(backward > 1.5 * time(PassKind::forward));
    CHECK(backward < 2.8 * time(PassKind::forward));
}

TEST_CASE("a price is the sum of its operators, split by class and basis") {
    const auto costs = costdb::CostDatabase::embedded("h100_sxm");
    const Operator gemm{"g", costdb::Gemm{.m = 4096, .n = 4096, .k = 4096}};
    const Operator gather{"c",
                          costdb::Collective{.kind = costdb::CollectiveKind::all_gather, .gpus = 8, .message = 16_MiB},
                          {},
                          Stream::tensor};
    InSituFactors factors;
    factors.factors = {.products = 1.5, .traffic = 0.5};
    const auto alone = costs.cost(std::get<costdb::Gemm>(gemm.query));
    const auto message = costs.cost(std::get<costdb::Collective>(gather.query));

    const auto cost = price(std::vector{gemm, gather}, costs, factors);

    const auto expected = std::llround(1.5 * static_cast<double>(alone.duration.count())) +
                          std::llround(0.5 * static_cast<double>(message.duration.count()));
    CHECK(cost.total().count() == expected);
    CHECK(cost.shares[0][static_cast<std::size_t>(alone.basis)].time.count() ==
          std::llround(1.5 * static_cast<double>(alone.duration.count())));
    CHECK((3 * cost).total() == 3 * cost.total());
}

// 12 heads over 2048 tokens: 50,331,648 scores. A product: 2 * S * 128 / (0.6 * 312 TFLOP/s) = 68.83 us, more than its
// traffic. Softmax and the like: 9 S bytes at 0.8 * 2.039 TB/s = 277.7 us, backward 12 S = 370.3 us.
TEST_CASE("attention that is not fused carries its scores through memory") {
    const auto costs = costdb::CostDatabase::embedded("a100_sxm");
    PackedAttention attention{{.q_heads = 12, .kv_heads = 12, .head_dim = 128}, {2048}, {}, 0, false};
    const auto time = [&] { return static_cast<double>(attention.cost(costs).duration.count()); };
    CHECK(time() == doctest::Approx(2 * 68827 + 277700).epsilon(0.001));
    attention.shape.pass = costdb::Pass::backward;
    CHECK(time() == doctest::Approx(4 * 68827 + 370266).epsilon(0.001));
    attention.lengths = {1024, 1024};  // half of the scores
    CHECK(time() == doctest::Approx((4 * 68827 + 370266) / 2.).epsilon(0.001));
}

TEST_CASE("an update moves its own part's bytes, and what a GPU holds of all") {
    const auto bytes = [](const Operator& op) { return std::get<costdb::Elementwise>(op.query).traffic; };
    CHECK(bytes(optimizer_update(1'700, 17)) == Bytes{34 * 100 + 8 * 1'700});
    CHECK(bytes(optimizer_update(1'000, 1, {.updated = 32, .held = 0})) == Bytes{32'000});
}
