// What of the exchanges of experts a recipe decides, products of experts, and the host's time for routing.
#include "emulator/operators/expert_operators.hpp"
#include "emulator/pricing/price.hpp"
#include "emulator/pricing/stage_memory.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::emulator;

namespace {

const PassShape shape{{4096}};

// 16 experts of width 512, 2 of them chosen, none shared.
workloads::Architecture with_experts() {
    auto network = testing::small_network(workloads::ModuleKind::language_model, 1, 1024);
    network.moe =
        workloads::MixtureOfExperts{.moe_layers = 1, .every = 1, .experts = 16, .top_k = 2, .expert_ffn = 512};
    return network;
}

Recipe with(const std::string& members) {
    return parse_recipe(
        JsonDocument("r.json", R"({"format":"pipeweaver-recipe/1","name":"mine","experts":{)" + members + "}}"));
}

const Operator& named(const std::vector<Operator>& operators, std::string_view name) {
    const auto found =
        std::find_if(operators.begin(), operators.end(), [&](const Operator& op) { return op.name == name; });
    REQUIRE(found != operators.end());
    return *found;
}

std::vector<Operator> forward_of(const Layout& layout, const std::string& members) {
    return layer_operators(with_experts(), shape, layout, PassKind::forward, 0, with(members).execution);
}

// Copies of each token that are sent, in thousandths.
std::int64_t copies_sent(const Layout& layout, const std::string& members) {
    const auto all = forward_of(layout, members);
    const auto sent = std::get<costdb::Collective>(named(all, "dispatch").query).message;
    CHECK(sent == std::get<costdb::Collective>(named(all, "combine").query).message);
    return std::llround(1000. * static_cast<double>(sent.count) / (2 * 1024 * 4096));
}

double ns(Duration time) { return static_cast<double>(time.count()); }

}  // namespace

TEST_CASE("a token reaches as many groups of experts as are expected to hold one that it chose") {
    const workloads::MixtureOfExperts moe{.experts = 16, .top_k = 2};
    CHECK(groups_reached(moe, 1) == doctest::Approx(1));
    // The second choice is in the first one's half 7 times of 15.
    CHECK(groups_reached(moe, 2) == doctest::Approx(1 + 8. / 15));
    CHECK(groups_reached(moe, 16) == doctest::Approx(2));
    CHECK(groups_reached({.experts = 4, .top_k = 4}, 2) == doctest::Approx(2));
}

TEST_CASE("copies of a token travel to each expert, or once to each GPU or node with experts that it chose") {
    const Layout two_nodes{.dp = 16, .ep = 16, .gpus_per_node = 8}, one_node{.dp = 8, .ep = 8};
    CHECK(copies_sent(two_nodes, "") == 2000);
    CHECK(copies_sent(two_nodes, R"("dispatcher":"once-a-node")") == 1533);
    // Eight GPUs with two experts each: the second choice is beside the first once of 15 times.
    CHECK(copies_sent(one_node, R"("dispatcher":"once-a-node")") == 1933);
    CHECK(copies_sent(one_node, R"("dispatcher":"alltoall")") == 2000);
}

TEST_CASE("node-limited routing chooses experts of so many nodes") {
    const Layout four_nodes{.dp = 16, .ep = 16, .gpus_per_node = 4};
    const std::string once = R"("dispatcher":"once-a-node")";
    CHECK(copies_sent(four_nodes, once) == 1800);
    CHECK(copies_sent(four_nodes, once + R"(,"most_nodes":2)") == 1571);
    CHECK(copies_sent(four_nodes, once + R"(,"most_nodes":1)") == 1000);
    CHECK(copies_sent(four_nodes, once + R"(,"most_nodes":9)") == 1800);
    CHECK(copies_sent(four_nodes, R"("most_nodes":1)") == 2000);
}

TEST_CASE("all wait for the fullest GPU of an expert parallel group") {
    const Layout spread{.dp = 8, .ep = 8}, alone{.dp = 8};
    CHECK(copies_sent(spread, R"("imbalance":1.5)") == 3000);
    const auto tokens = [](const Layout& layout, const std::string& members) {
        return std::get<Experts>(named(forward_of(layout, members), "experts").query).layer.tokens;
    };
    CHECK(tokens(spread, "") == 8 * 4096);
    CHECK(tokens(spread, R"("imbalance":1.5)") == 12 * 4096);
    CHECK(tokens(alone, R"("imbalance":1.5)") == 4096);
}

TEST_CASE("experts of the fullest GPU keep what they got of its tokens") {
    const auto kept = [](const Layout& layout, const std::string& members) {
        return block_activations(with_experts(), 0, shape, layout, with(members)).count;
    };
    // Half of what 4096 positions leave on one of two tensor parallel GPUs, two copies each: 1024 values in and three
    // times 512 between the products, of 2 bytes.
    const Layout spread{.tp = 2, .dp = 8, .ep = 8}, alone{.tp = 2, .dp = 8};
    CHECK(kept(spread, R"("imbalance":1.5)") - kept(spread, "") == 4096 / 2 * 2 * (1024 + 3 * 512) * 2 / 2);
    CHECK(kept(alone, R"("imbalance":1.5)") == kept(alone, ""));
}

TEST_CASE("GPUs of a split expert gather the tokens of all of them and scatter what it gave") {
    const Layout layout{.tp = 4, .dp = 4, .ep = 4, .gpus_per_node = 8, .network = {400'000'000'000}};
    const auto whole = forward_of(layout, ""), split = forward_of(layout, R"("tensor_parallel":4)");
    REQUIRE(split.size() == whole.size() + 2);
    const auto sent = [&](std::string_view name) { return std::get<costdb::Collective>(named(split, name).query); };
    // 4096 / 4 positions, 2 copies each, 1024 values of 2 bytes: exchanged with as many as where experts are whole.
    constexpr std::int64_t copies = 2 * 1024, bytes = copies * 1024 * 2;
    for (const char* name : {"dispatch", "combine"}) {
        CHECK((sent(name).message.count == bytes && sent(name).gpus == 4));
        // Two of a node's GPUs are in a group, four groups share its network.
        CHECK((sent(name).gpus_per_node == 2 && sent(name).network == Bandwidth{100'000'000'000}));
    }
    CHECK(sent("gather tokens").kind == costdb::CollectiveKind::all_gather);
    CHECK(sent("scatter tokens").kind == costdb::CollectiveKind::reduce_scatter);
    for (const char* name : {"gather tokens", "scatter tokens"})
        CHECK((sent(name).message.count == 4 * bytes && sent(name).gpus == 4 && sent(name).gpus_per_node == 8));
    // The tokens of 16 GPUs, a fourth of the columns: as many FLOPs.
    const auto experts = std::get<Experts>(named(split, "experts").query);
    CHECK((experts.layer.tokens == 16 * 1024 && experts.layer.ffn == 128 && experts.gpus == 4));
    CHECK(experts.flops() == 6. * 2 * 1024 * 1024 * 512);
    CHECK(experts.flops() == std::get<Experts>(named(whole, "experts").query).flops());
    // Copies are made of own tokens, and sorted where they are gathered.
    const auto traffic = [&](const std::vector<Operator>& of) {
        return std::get<costdb::Elementwise>(named(of, "permute").query).traffic.count;
    };
    CHECK(traffic(whole) == 4 * bytes);
    CHECK(traffic(split) == 2 * bytes + 2 * 4 * bytes);
    const auto weights = layer_operators(with_experts(), shape, layout, PassKind::weight_gradient, 0,
                                         with(R"("tensor_parallel":4)").execution);
    CHECK(std::none_of(weights.begin(), weights.end(), [](const Operator& op) { return moves_tokens(op.name); }));
}

TEST_CASE("split experts on one GPU each are gathered from without an exchange") {
    const auto all = forward_of({.tp = 4, .dp = 4}, R"("tensor_parallel":2)");
    CHECK(std::none_of(all.begin(), all.end(), [](const Operator& op) { return op.name == "dispatch"; }));
    CHECK(std::get<Experts>(named(all, "experts").query).layer.tokens == 2 * 1024);
    CHECK(std::get<costdb::Collective>(named(all, "gather tokens").query).gpus == 2);
}

TEST_CASE("a node's GPUs of a split expert count as one where tokens are sent once a node") {
    // Eight groups of two GPUs, four to a node: two nodes.
    const Layout layout{.dp = 16, .ep = 8, .gpus_per_node = 8};
    CHECK(copies_sent(layout, R"("dispatcher":"once-a-node","tensor_parallel":2)") == 1533);
}

TEST_CASE("of the exchanges of experts a recipe says how much stays exposed, of no others") {
    const auto costs = costdb::CostDatabase::embedded("h100_sxm");
    const Layout layout{.dp = 8, .cp = 2, .ep = 8};
    const auto exposed = [&](double part) {
        Recipe recipe;
        recipe.execution.experts.exposed = part;
        auto all = layer_operators(with_experts(), shape, layout, PassKind::forward, 0, recipe.execution);
        const auto priced = price(std::move(all), costs, {}, recipe);
        double of_experts = 0, others = 0;
        for (std::size_t i = 0; i < priced.operators.size(); ++i) {
            const Operator& op = priced.operators[i];
            if (op.stream == Stream::context)
                (op.name == "dispatch" || op.name == "combine" ? of_experts : others) += ns(priced.duration[i]);
        }
        return std::pair{of_experts, others};
    };
    const auto all = exposed(1), quarter = exposed(0.25);
    CHECK(all.second > 0);
    CHECK(quarter.second == all.second);
    CHECK(quarter.first == doctest::Approx(all.first / 4).epsilon(0.001));
}

TEST_CASE("NCCL's factor on traffic is not of what sends tokens once over a network") {
    const Layout layout{.dp = 16, .ep = 16, .gpus_per_node = 8, .network = {400'000'000'000}};
    const Layout one_node{.dp = 8, .ep = 8, .gpus_per_node = 8};
    InSituFactors in_situ;
    in_situ.factors.traffic = 1.5;
    const auto factor = [&](const Layout& on, const std::string& dispatcher) {
        const std::string members = R"("dispatcher":")" + dispatcher + R"(","exposed":0.5)";
        return in_situ_factor(named(forward_of(on, members), "dispatch"), in_situ, with(members));
    };
    CHECK(factor(layout, "once-a-node") == 0.5);
    CHECK(factor(layout, "alltoall") == 0.75);
    CHECK(factor(one_node, "once-a-node") == 0.75);
}

TEST_CASE("experts of a step in 8 bits are in 8 bits, and what they multiply is cast") {
    const auto eight_bit = [](std::int64_t top_k, const Layout& layout = {}, double imbalance = 1) {
        auto network = with_experts();
        network.moe->top_k = top_k;
        Execution execution;
        execution.products = costdb::Dtype::fp8;
        execution.experts.imbalance = imbalance;
        return layer_operators(network, shape, layout, PassKind::forward, 0, execution);
    };
    const auto casts = [&](std::int64_t top_k, const Layout& layout = {}, double imbalance = 1) {
        return std::get<costdb::Elementwise>(named(eight_bit(top_k, layout, imbalance), "casts").query).traffic.count;
    };
    CHECK(std::get<Experts>(named(eight_bit(2), "experts").query).layer.dtype == costdb::Dtype::fp8);
    CHECK(std::get<Experts>(named(forward_of({}, ""), "experts").query).layer.dtype == costdb::Dtype::bf16);
    // A copy more of each position, 3 bytes for each of its 1024 values and of the 512 between the products.
    CHECK(casts(3) - casts(2) == 3 * 4096 * (1024 + 512));
    // Half as many more of both copies on the fullest GPU.
    const Layout spread{.dp = 8, .ep = 8};
    CHECK(casts(2, spread, 1.5) - casts(2, spread) == 3 * 4096 * (1024 + 512));
}

// On GB200 this layer was measured up to 16,384 tokens, in 2483.6 us.
TEST_CASE("more tokens than measured take as much longer in 8 bits where products alone are slower") {
    const auto costs = costdb::CostDatabase::embedded("gb200");
    const auto time = [&](costdb::Dtype dtype) {
        const costdb::MixtureOfExperts layer{
            .dtype = dtype, .tokens = 6 * 16384, .hidden = 4096, .ffn = 1536, .top_k = 8, .experts = 128};
        return ns(ask(costs, Operator{"experts", Experts{layer, 16}}).duration);
    };
    CHECK(time(costdb::Dtype::fp8) == doctest::Approx(2483.6e3 * 6 / 16).epsilon(0.02));
    CHECK(time(costdb::Dtype::fp8) < time(costdb::Dtype::bf16));
}

TEST_CASE("experts that were not measured take a product for each expert and matrix") {
    const auto costs = costdb::CostDatabase::embedded("h100_sxm");
    const costdb::MixtureOfExperts layer{
        .tokens = 65536, .hidden = 3072, .ffn = 1280, .top_k = 4, .experts = 32};  // 8192 rows each
    REQUIRE(costs.cost(layer).basis > costdb::Basis::interpolated);
    const auto product = [&](std::int64_t n, std::int64_t k, costdb::Pass pass) {
        return 4 * ns(costs.cost(costdb::Gemm{.m = 8192, .n = n, .k = k, .pass = pass}).duration);
    };
    const auto time = [&](costdb::Pass pass, bool gated) {
        return ns(ask(costs, Operator{"experts", Experts{layer, 8, gated, pass}}).duration);
    };
    const auto weights = costdb::Pass::backward_weight;
    CHECK(time(weights, true) ==
          doctest::Approx(product(2560, 3072, weights) + product(3072, 1280, weights)).epsilon(0.001));
    const auto forward = costdb::Pass::forward;
    const double products = product(2560, 3072, forward) + product(3072, 1280, forward);
    CHECK(time(forward, true) > products);
    CHECK(time(forward, true) < 1.2 * products);
    CHECK(time(forward, false) < 0.75 * time(forward, true));
}

TEST_CASE("no recipe with runs of a Hopper has experts that beat its peak") {
    const Experts experts{.layer = {.dtype = costdb::Dtype::bf16,
                                    .tokens = 16'384,
                                    .hidden = 4096,
                                    .ffn = 14'336,
                                    .top_k = 2,
                                    .experts = 8}};  // Mixtral-8x7B: alone 0.68 of an H200's peak
    for (const std::string device : {"h100_sxm", "h200_sxm"}) {
        const auto alone = experts.cost(costdb::CostDatabase::embedded(device)).duration;
        for (const Recipe& recipe : recipes()) {
            if (!recipe.runs.contains(device)) continue;
            CAPTURE(recipe.name);
            const double factor = in_situ_factors(device).factors.products * recipe.kernels.experts;
            const double seconds = 1e-9 * factor * static_cast<double>(alone.count());
            CHECK(experts.flops() / seconds < workloads::device(device).bf16_flops);
        }
    }
}

TEST_CASE("experts that were not measured take the share of the peak that was fitted, where one was") {
    const double share = fitted_constants("b200")->grouped_gemm_share;
    REQUIRE(share < 1);
    CHECK(fitted_constants("gb200")->grouped_gemm_share == 1);
    CHECK(constants_like("h100_sxm")->rows == fitted_constants("h100_sxm")->rows);
    CHECK_FALSE(constants_like("cpu"));
    const costdb::MixtureOfExperts layer{.tokens = 65536, .hidden = 3072, .ffn = 1280, .top_k = 4, .experts = 32};
    const auto on = [&](const char* device) {
        return ns(ask(costdb::CostDatabase::embedded(device), Operator{"experts", Experts{layer, 8}}).duration);
    };
    // Three products of 65536 * 4 rows, 3072 x 1280, on eight GPUs of 2250 TFLOP/s.
    CHECK(on("b200") == doctest::Approx(6. * 65536 * 4 * 3072 * 1280 / (share * 2250e12) * 1e9 / 8).epsilon(0.001));
    CHECK(on("gb200") < on("b200"));
    costdb::MixtureOfExperts eight_bit = layer;
    eight_bit.dtype = costdb::Dtype::fp8;
    const auto costs = costdb::CostDatabase::embedded("b200");
    CHECK(2 * ns(ask(costs, Operator{"experts", Experts{eight_bit, 8}}).duration) ==
          doctest::Approx(on("b200")).epsilon(0.001));
}

TEST_CASE(
    "routing takes time of its own on B200 where every copy of a token is sent, none in kernels that send it once") {
    const auto forward = [](Dispatcher dispatcher) {
        Setup setup{{},
                    workloads::find_cluster("b200-sxm:8"),
                    {.tp = 8},
                    std::make_shared<const costdb::CostDatabase>(costdb::CostDatabase::embedded("b200"))};
        setup.model.modules = {{"llm", with_experts(), workloads::PassUnit::microbatch, {}, true}};
        setup.recipe.execution.experts.dispatcher = dispatcher;
        LayerCosts costs(setup);
        return ns(costs.layer(0, 0, shape, PassKind::forward, {}).time);
    };
    const double routing = 1e3 * fitted_constants("b200")->expert_layer_us / 2.3;
    CHECK(forward(Dispatcher::all_to_all) - forward(Dispatcher::once_a_node) == doctest::Approx(routing).epsilon(1e-3));
}

TEST_CASE("where host and GPU wait for each other a layer with experts takes the root of both times' squares") {
    const auto step_of = [](Duration waits) {
        Setup setup{{}, workloads::find_cluster("h100-sxm:8"), {.tp = 8}, testing::small_costs()};
        setup.model.modules = {{"llm", with_experts(), workloads::PassUnit::microbatch, {}, true}};
        setup.recipe.expert_layer = waits;
        LayerCosts costs(setup);
        return ns(costs.layer(0, 0, shape, PassKind::forward, {}).time);
    };
    const double own = step_of({});
    // A forward has 1 of 2.3 parts of it.
    const double waits = 1e6 / 2.3;
    CHECK(step_of(Duration{1'000'000}) == doctest::Approx(std::hypot(own, waits)).epsilon(1e-4));
}
