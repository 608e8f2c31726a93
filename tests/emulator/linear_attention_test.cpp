// Linear attention: operators, their FLOPs, bytes and times worked by hand; what layouts do with it.
#include "emulator/pricing/price.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/layout.hpp"
#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/queries.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using testing::queries;

namespace {

const auto& qwen() { return workloads::architecture("qwen3.5-27b-llm"); }
const auto& nemotron() { return workloads::architecture("nemotron-h-8b"); }
const PassShape shape{{4096}};

std::vector<std::string> names(const std::vector<Operator>& operators) {
    std::vector<std::string> all;
    all.reserve(operators.size());
    for (const auto& op : operators) all.emplace_back(op.name);
    return all;
}

const Operator& named(const std::vector<Operator>& operators, std::string_view name) {
    const auto found =
        std::find_if(operators.begin(), operators.end(), [&](const Operator& op) { return op.name == name; });
    REQUIRE(found != operators.end());
    return *found;
}

LinearRule rule_of(const std::vector<Operator>& operators) {
    return std::get<LinearRule>(named(operators, "linear attention").query);
}

Bytes traffic_of(const std::vector<Operator>& operators, std::string_view name) {
    return std::get<costdb::Elementwise>(named(operators, name).query).traffic;
}

workloads::Model model_of(const workloads::Architecture& network) {
    workloads::Model model;
    model.name = "m";
    model.modules = {{"llm", network, workloads::PassUnit::microbatch, {workloads::Modality::text}, true}};
    return model;
}

double microseconds(const LinearRule& rule, std::string_view device) {
    const auto costs = costdb::CostDatabase::embedded(device);
    return 1e-3 * static_cast<double>(rule.cost(costs).duration.count());
}

LinearRule delta(std::int64_t heads, std::vector<std::int64_t> lengths, costdb::Pass pass) {
    LinearRule rule{*qwen().linear, std::move(lengths), pass};
    rule.shape.value_heads = heads;
    return rule;
}

}  // namespace

TEST_CASE("a layer of gated delta nets is projection, convolution, rule, gated norm and projection") {
    const auto forward = layer_operators(qwen(), shape, {.tp = 2}, PassKind::forward, 0);
    CHECK(names(forward) == std::vector<std::string>{"norms and activations", "gather", "linear in", "convolution",
                                                     "linear attention", "gated norm", "linear out", "scatter",
                                                     "gather", "up", "down", "scatter"});
    const auto in = std::get<costdb::Gemm>(named(forward, "linear in").query);
    CHECK((in.m == 4096 && in.n == (2 * 2048 + 2 * 6144 + 96) / 2 && in.k == 5120));
    const auto out = std::get<costdb::Gemm>(named(forward, "linear out").query);
    CHECK((out.m == 4096 && out.n == 5120 && out.k == 3072));
    // 5120 columns transposed twice and convolved; 2048 of queries and keys normed; these copied to 24 heads of each.
    CHECK(traffic_of(forward, "convolution") == Bytes{4096 * (8 * 5120 + 4 * 2048 + 2 * (2048 + 6144))});
    CHECK(traffic_of(forward, "gated norm") == Bytes{4096 * 6 * 3072});
    // Norms and residuals, and the activation function: no queries and keys.
    CHECK(traffic_of(forward, "norms and activations") == Bytes{4096 * (20 * 5120 / 2 + 6 * 17'408 / 2)});

    const auto weights = layer_operators(qwen(), shape, {.tp = 2}, PassKind::weight_gradient, 0);
    CHECK(std::none_of(weights.begin(), weights.end(), [](const Operator& op) { return op.name == "convolution"; }));
    CHECK(queries<LinearRule>(weights).empty());
    const auto backward = layer_operators(qwen(), shape, {.tp = 2}, PassKind::backward, 0);
    CHECK(rule_of(backward).pass == costdb::Pass::backward);
}

TEST_CASE("a gated attention projects its gate and passes the output once more") {
    const auto forward = layer_operators(qwen(), shape, {.tp = 2}, PassKind::forward, 3);
    CHECK(std::get<costdb::Gemm>(named(forward, "qkv").query).n == (2 * 6144 + 2 * 1024) / 2);
    CHECK(traffic_of(forward, "output gate") == Bytes{4096 * 6 * 3072});
    CHECK(queries<LinearRule>(forward).empty());
}

TEST_CASE("layers of one part have that part alone") {
    CHECK(names(layer_operators(nemotron(), shape, {}, PassKind::forward, 0)) ==
          std::vector<std::string>{"norms and activations", "linear in", "convolution", "linear attention",
                                   "gated norm", "linear out"});
    CHECK(names(layer_operators(nemotron(), shape, {}, PassKind::forward, 1)) ==
          std::vector<std::string>{"norms and activations", "up", "down"});
    CHECK(names(layer_operators(nemotron(), shape, {}, PassKind::forward, 7)) ==
          std::vector<std::string>{"norms and activations", "qkv", "attention", "attention output"});
    CHECK(traffic_of(layer_operators(nemotron(), shape, {}, PassKind::forward, 0), "norms and activations") ==
          Bytes{4096 * 10 * 4096});
}

TEST_CASE("products and bytes of a chunk of a delta net are those of its kernels") {
    // Two heads, one chunk of 64 positions, keys of 128 and values of 64.
    LinearRule rule{{.key_heads = 1, .value_heads = 2, .key_dim = 128, .value_dim = 64}, {64}};
    constexpr double square = 64 * 64, state = 64 * 128 * 64, cube = 64 * 64 * 64;
    CHECK(rule.flops() == doctest::Approx(2 * (square * (6 * 128 + 4 * 64) + 6 * state + 2 * cube / 3)));
    CHECK(rule.bytes() == 64 * 2 * (14 * 128 + 12 * 64 + 12 * 64 + 4 * 128));
    rule.pass = costdb::Pass::backward;
    CHECK(rule.flops() == doctest::Approx(2 * (square * (14 * 128 + 10 * 64) + 16 * state + 4 * cube)));
    CHECK(rule.bytes() == 64 * 2 * (36 * 128 + 30 * 64 + 8 * 64 + 8 * 128));
    // Chunks do not cross sequences.
    CHECK(LinearRule{rule.shape, {64, 65, 1}}.chunks() == 4);
}

TEST_CASE("products and bytes of a chunk of Mamba-2 are those of its kernels") {
    LinearRule rule{{workloads::LinearKind::mamba2, 2, 8, 128, 64, 4, 128}, {128}};
    constexpr double square = 128 * 128, state = 128 * 128 * 64;
    CHECK(rule.flops() == 8 * (4 * state + square * 64) + 2 * square * 128);
    CHECK(rule.bytes() == 128. * (8 * (6 * 64 + 16 * 64) + 2 * 8 * 128));
    rule.pass = costdb::Pass::backward;
    CHECK(rule.flops() == 8 * (10 * state + 2 * square * 64) + 2 * 3 * square * 128);
    CHECK(rule.bytes() == 128. * (8 * (18 * 64 + 40 * 64) + 2 * 16 * 128));
}

TEST_CASE("delta nets take as long as flash-linear-attention does on H200") {
    // FlashQLA's benchmark_results_H200.txt: heads of values, sequences, ms measured.
    struct Measured {
        std::int64_t heads;
        std::vector<std::int64_t> lengths;
        costdb::Pass pass;
        double ms;
    };
    const auto forward = costdb::Pass::forward, backward = costdb::Pass::backward;
    const std::vector<Measured> all{{32, {32'768}, forward, 1.890},  {32, {8192}, forward, 0.472},
                                    {64, {16'384}, forward, 1.598},  {8, {32'768}, forward, 0.902},
                                    {16, {8192}, forward, 0.316},    {48, {8192}, forward, 0.665},
                                    {24, {16'384}, forward, 0.764},  {32, {8192, 8192, 8192, 8192}, forward, 1.898},
                                    {32, {32'768}, backward, 5.697}, {32, {8192}, backward, 1.444},
                                    {16, {32'768}, backward, 3.701}, {8, {8192}, backward, 0.722},
                                    {8, {32'768}, backward, 2.743}};
    for (const auto& one : all) {
        CAPTURE(one.heads);
        CAPTURE(one.ms);
        CHECK(microseconds(delta(one.heads, one.lengths, one.pass), "h200_sxm") ==
              doctest::Approx(1e3 * one.ms).epsilon(one.pass == forward ? 0.12 : 0.2));
    }
}

TEST_CASE("delta nets are as much faster on a device as the kernel that tables hold is, and else go by the peak") {
    const auto forward = costdb::Pass::forward;
    const auto kernel = [](const costdb::CostDatabase& costs) {
        const costdb::DeltaNet asked{.batch = 16, .seq_len = 4096, .key_heads = 16, .value_heads = 32};
        return static_cast<double>(costs.cost(asked).duration.count());
    };
    const auto h200 = costdb::CostDatabase::embedded("h200_sxm");
    CHECK(kernel(h200) == doctest::Approx(863'572));
    CHECK(delta(32, {32'768}, forward).cost(h200).basis == costdb::Basis::extrapolated);
    const auto b300 = costdb::CostDatabase::embedded("b300");
    CHECK(kernel(b300) < kernel(h200));
    // Products decide: they shrink as the kernel does.
    CHECK(microseconds(delta(32, {32'768}, forward), "b300") / microseconds(delta(32, {32'768}, forward), "h200_sxm") ==
          doctest::Approx(kernel(b300) / kernel(h200)).epsilon(0.1));
    CHECK(delta(8, {64}, forward).cost(costdb::CostDatabase::embedded("a100_sxm")).basis == costdb::Basis::modelled);
}

TEST_CASE("tensor parallelism halves the heads, context parallelism gives whole sequences to part of them") {
    const auto whole = rule_of(layer_operators(nemotron(), shape, {}, PassKind::forward, 0));
    const auto half = rule_of(layer_operators(nemotron(), shape, {.tp = 2}, PassKind::forward, 0));
    CHECK((half.shape.value_heads == 64 && half.shape.key_heads == 4));
    CHECK(2 * half.flops() == whole.flops());
    CHECK(2 * half.bytes() == whole.bytes());

    for (const auto context : {ContextParallel::all_to_all, ContextParallel::ring}) {
        const auto operators =
            layer_operators(nemotron(), shape, {.tp = 2, .cp = 4, .context = context}, PassKind::forward, 0);
        const auto part = rule_of(operators);
        CHECK((part.shape.value_heads == 16 && part.shape.key_heads == 1));
        CHECK(part.lengths == std::vector<std::int64_t>{4096});
        const auto& in = std::get<costdb::Collective>(named(operators, "exchange columns").query);
        CHECK((in.kind == costdb::CollectiveKind::all_to_all && in.gpus == 4));
        CHECK(in.message == Bytes{2 * 1024 * 18'560 / 2});
        CHECK(std::get<costdb::Collective>(named(operators, "exchange outputs").query).message ==
              Bytes{2 * 1024 * 8192 / 2});
    }
}

TEST_CASE("heads that a layout does not divide are named, with what fits") {
    const auto of = [](const workloads::Architecture& network, const Layout& layout) {
        const auto found = conflict(layout, model_of(network));
        return found ? found->message : std::string();
    };
    CHECK(of(nemotron(), {.tp = 8}).empty());
    CHECK(
        of(nemotron(), {.tp = 16}) ==
        "--tp: 16 does not divide the 8 key heads (Mamba-2: groups) of the linear attention of module 'llm'; the next "
        "smaller that divides the heads of every module is 8");
    // 24 value heads of two key heads on a GPU: 3 of a rank's groups share neither out.
    const Layout three{.tp = 8, .cp = 3, .context = ContextParallel::ring};
    CHECK(of(qwen(), three)
              .starts_with("--cp: linear attention is exchanged by heads whatever --context is: tp 8 * cp "
                           "3 does not share out the 48 value heads and 16 key heads of module 'llm'"));
    CHECK(of(qwen(), {.tp = 4, .cp = 2}).empty());
}

TEST_CASE("a rule takes longer backwards, for more positions and for fewer GPUs, and longest in one sequence") {
    const auto forward = costdb::Pass::forward;
    const double once = microseconds(delta(8, {8192}, forward), "h100_sxm");
    CHECK(microseconds(delta(8, {8192}, costdb::Pass::backward), "h100_sxm") > 2 * once);
    CHECK(microseconds(delta(8, {16'384}, forward), "h100_sxm") > 1.9 * once);
    CHECK(microseconds(delta(16, {8192}, forward), "h100_sxm") > once);
    CHECK(microseconds(delta(8, {2048, 2048, 2048, 2048}, forward), "h100_sxm") < once);
    CHECK(microseconds(delta(32, {8192}, forward), "a100_sxm") > microseconds(delta(32, {8192}, forward), "h100_sxm"));
}

TEST_CASE("blocks of a hybrid are priced by their kind, whatever is kept of costs") {
    const Layout layout{.tp = 2};
    Setup setup{model_of(qwen()), testing::small_cluster(layout.gpus()), layout, testing::small_costs()};
    const LayerRange all{0, 0, qwen().layers};
    const auto sum = [&](LayerCosts::Store store, PassKind pass) {
        return LayerCosts(setup, 0, store).layers(all, shape, pass).time;
    };
    for (const PassKind pass : {PassKind::forward, PassKind::backward}) {
        const auto own = sum(LayerCosts::Store::own, pass);
        CHECK(own == sum(LayerCosts::Store::shared, pass));
        CHECK(own == sum(LayerCosts::Store::shared, pass));
        LayerCosts costs(setup, 0, LayerCosts::Store::own);
        const auto linear = costs.layer(0, 0, shape, pass).time, full = costs.layer(0, 3, shape, pass).time;
        CHECK(linear != full);
        CHECK(own == 48 * linear + 16 * full);
    }
}

TEST_CASE("blocks side by side with experts are other ones than those without") {
    auto network = workloads::architecture("qwen3.6-35b-a3b-llm");
    network.layer_pattern = "P";
    network.ffn = 4096;
    network.moe->first_layer = 1;
    network.moe->every = 2;
    network.moe->moe_layers = network.layers / 2;
    REQUIRE(block_kind(network, 0) == workloads::BlockKind::parallel);
    REQUIRE(block_kind(network, 1) == workloads::BlockKind::parallel_experts);
    CHECK(layer_flops(network, 0, shape) != layer_flops(network, 1, shape));
    // Of both in one stage each costs what it costs alone.
    const auto cost = [&](std::int64_t first, std::int64_t count) {
        testing::SmallWorkload setup({.tp = 1, .pp = 1, .dp = 1});
        setup.model = model_of(network);
        LayerCosts costs(setup);
        return costs.layers({0, first, count}, shape, PassKind::forward);
    };
    const PassCost dense = cost(0, 1), experts = cost(1, 1), all = cost(0, 4);
    CHECK(dense.kernels < experts.kernels);
    CHECK(all.kernels == 2 * (dense.kernels + experts.kernels));
    CHECK(all.time == 2 * (dense.time + experts.time));
}
