// Networks with experts, latent and factored attention: operators, parameters and memory worked by hand.
#include "emulator/pricing/price.hpp"
#include "emulator/pricing/stage_memory.hpp"
#include "emulator/step/step_parts.hpp"
#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/operator_flops.hpp"
#include "tests/support/queries.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::schedule;
using namespace pipeweaver::emulator;
using testing::queries;

namespace {

const PassShape shape{{100, 28}};  // 128 positions
const Layout tp4{.tp = 4};

// Hidden 1024, 8 heads of 128, 8 experts of width 512 of which 2 are chosen, shared ones of 1024.
workloads::Architecture with_experts(std::int64_t layers = 2) {
    auto network = testing::small_network(workloads::ModuleKind::language_model, layers, 1024);
    network.moe = workloads::MixtureOfExperts{.moe_layers = layers - 1,
                                              .first_layer = 1,
                                              .every = 1,
                                              .experts = 8,
                                              .top_k = 2,
                                              .expert_ffn = 512,
                                              .shared_ffn = 1024};
    return network;
}

// Heads of 64 without and 32 with position, values of 48; ranks 256 and 192.
workloads::Architecture latent() {
    auto network = testing::small_network(workloads::ModuleKind::language_model, 1, 1024);
    network.attention.kind = workloads::AttentionKind::latent;
    network.attention.q_lora_rank = 256;
    network.attention.kv_lora_rank = 192;
    network.attention.qk_nope_head_dim = 64;
    network.attention.qk_rope_head_dim = 32;
    network.attention.v_head_dim = 48;
    return network;
}

// One key and value head of 128; queries through 256 columns.
workloads::Architecture factored() {
    auto network = testing::small_network(workloads::ModuleKind::language_model, 1, 1024);
    network.attention.kind = workloads::AttentionKind::factored;
    network.attention.share_q_dim = 256;
    network.kv_heads = 1;
    return network;
}

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

void check_gemm(const std::vector<Operator>& operators, std::string_view name, std::int64_t m, std::int64_t n,
                std::int64_t k) {
    CAPTURE(name);
    const auto gemm = std::get<costdb::Gemm>(named(operators, name).query);
    CHECK(gemm.m == m);
    CHECK(gemm.n == n);
    CHECK(gemm.k == k);
}

Bytes message(const std::vector<Operator>& operators, std::string_view name) {
    return std::get<costdb::Collective>(named(operators, name).query).message;
}

// All layers of a language model on one chain of `layout.pp` stages; one microbatch of 4096 tokens.
struct OneChain {
    OneChain(const workloads::Architecture& network, const Layout& on)
        : setup{{}, workloads::find_cluster("h100-sxm:" + std::to_string(on.gpus())), on, testing::small_costs()} {
        setup.model.name = network.name;
        setup.model.modules = {{"llm", network, workloads::PassUnit::microbatch, {}, true}};
        input.setup = &setup;
        Chain chain{"llm", {}};
        for (std::int64_t r = 0; r < on.pp; ++r) {
            const std::int64_t first = network.layers * r / on.pp, last = network.layers * (r + 1) / on.pp;
            chain.stages.push_back({RankId{static_cast<std::uint32_t>(r)}, {{0, first, last - first}}});
        }
        input.chains = {chain};
        input.units = {{{Unit{{PassShape{{4096}}}, {}}}}};
    }

    Setup setup;
    StepInput input;
};

}  // namespace

TEST_CASE("a layer with experts routes a GPU's own positions and exchanges copies of them") {
    const Layout layout{.tp = 4, .dp = 2, .ep = 8};
    const auto forward = layer_operators(with_experts(), shape, layout, PassKind::forward, 1);

    CHECK(names(forward) == std::vector<std::string>{"norms and activations", "gather", "qkv", "attention",
                                                     "attention output", "scatter", "router", "permute", "dispatch",
                                                     "experts", "combine", "unpermute", "gather", "shared up",
                                                     "shared down", "scatter"});
    // 128 / 4 own positions, 2 copies each.
    check_gemm(forward, "router", 32, 8, 1024);
    check_gemm(forward, "shared up", 128, 2 * 1024 / 4, 1024);
    check_gemm(forward, "shared down", 128, 1024, 1024 / 4);
    const auto experts = queries<Experts>(forward).front();
    CHECK(experts.layer.tokens == 32 * 8);
    CHECK((experts.layer.hidden == 1024 && experts.layer.ffn == 512 && experts.layer.top_k == 2));
    CHECK((experts.layer.experts == 8 && experts.layer.moe_ep == 1 && experts.gpus == 8));
    CHECK(experts.flops() == 6. * 32 * 2 * 1024 * 512);
    CHECK(named(forward, "experts").kind() == OperatorClass::experts);
    const auto traffic = [&](const char* name) {
        return std::get<costdb::Elementwise>(named(forward, name).query).traffic;
    };
    CHECK(traffic("permute") == Bytes{4 * 2 * 64 * 1024});
    CHECK(traffic("unpermute") == Bytes{4 * 2 * 64 * 1024});
    // Norms and attention as in a dense layer, activation functions of the shared experts.
    CHECK(traffic("norms and activations") == Bytes{(20 * 128 * 1024 + 4 * 128 * 2 * 1024 + 2 * 128 * 3 * 1024) / 4});
    for (const char* name : {"dispatch", "combine"}) {
        const auto exchange = std::get<costdb::Collective>(named(forward, name).query);
        CHECK(exchange.kind == costdb::CollectiveKind::all_to_all);
        CHECK(exchange.gpus == 8);
        CHECK(exchange.message == Bytes{2 * 64 * 1024});
        CHECK(named(forward, name).stream == Stream::context);
    }
}

TEST_CASE("experts on one GPU exchange nothing, and weight gradients exchange nothing anywhere") {
    const auto counted = [](const Layout& layout, PassKind pass) {
        const auto all = layer_operators(with_experts(), shape, layout, pass, 1);
        return std::count_if(all.begin(), all.end(), [](const Operator& op) { return op.stream == Stream::context; });
    };
    CHECK(counted({.tp = 4}, PassKind::forward) == 0);
    const Layout spread{.tp = 4, .ep = 4};
    CHECK(counted(spread, PassKind::forward) == 2);
    CHECK(counted(spread, PassKind::backward) == 2);
    CHECK(counted(spread, PassKind::input_gradient) == 2);
    CHECK(counted(spread, PassKind::weight_gradient) == 0);
}

TEST_CASE("expert groups of more than a node send over the cluster's network") {
    auto cluster = testing::small_cluster(32);
    cluster.network = Bandwidth{123'000'000'000};
    const auto layout = Layout{.tp = 4, .dp = 8, .ep = 8}.on(cluster);
    const auto all = layer_operators(with_experts(), shape, layout, PassKind::forward, 1);
    const auto exchange = std::get<costdb::Collective>(named(all, "dispatch").query);
    CHECK(exchange.gpus_per_node == 8);
    CHECK(exchange.network == Bandwidth{123'000'000'000});
}

TEST_CASE("latent attention projects own positions down and gathers what is compressed") {
    const auto forward = layer_operators(latent(), shape, tp4, PassKind::forward);
    CHECK(names(forward) == std::vector<std::string>{"norms and activations", "gather", "scatter", "query down",
                                                     "query up", "keys down", "keys and values up", "attention",
                                                     "attention output", "gather", "up", "down", "scatter"});
    check_gemm(forward, "query down", 32, 256, 1024);
    check_gemm(forward, "query up", 128, 8 / 4 * 96, 256);
    check_gemm(forward, "keys down", 32, 192 + 32, 1024);
    check_gemm(forward, "keys and values up", 128, 8 / 4 * (64 + 48), 192);
    check_gemm(forward, "attention output", 128, 1024, 8 / 4 * 48);
    const auto attention = queries<PackedAttention>(forward).front();
    CHECK((attention.shape.q_heads == 2 && attention.shape.kv_heads == 2));
    CHECK((attention.shape.head_dim == 96 && attention.value_dim == 48));
    CHECK(message(forward, "gather") == Bytes{2 * 128 * (256 + 192 + 32)});
    CHECK(message(forward, "scatter") == Bytes{2 * 128 * 1024});

    // Backward, gradients of the output are gathered, those of what is compressed scattered.
    const auto backward = layer_operators(latent(), shape, tp4, PassKind::backward);
    CHECK(message(backward, "gather") == Bytes{2 * 128 * 1024});
    CHECK(message(backward, "scatter") == Bytes{2 * 128 * 480});
    CHECK(message(backward, "gather for weights") == Bytes{2 * 128 * 480});
}

TEST_CASE("a latent query of one matrix reads gathered positions") {
    auto network = latent();
    network.attention.q_lora_rank.reset();
    const auto forward = layer_operators(network, shape, tp4, PassKind::forward);
    check_gemm(forward, "query up", 128, 2 * 96, 1024);
    CHECK(message(forward, "gather") == Bytes{2 * 128 * (1024 + 192 + 32)});
}

TEST_CASE("factored attention shares its one key and value head among tensor parallel GPUs") {
    const auto forward = layer_operators(factored(), shape, tp4, PassKind::forward);
    check_gemm(forward, "query down", 32, 256, 1024);
    check_gemm(forward, "keys and values", 32, 2 * 128, 1024);
    check_gemm(forward, "query up", 128, 8 * 128 / 4, 256);
    check_gemm(forward, "attention output", 128, 1024, 8 * 128 / 4);
    const auto attention = queries<PackedAttention>(forward).front();
    CHECK((attention.shape.q_heads == 2 && attention.shape.kv_heads == 1 && attention.shape.head_dim == 128));
    CHECK(message(forward, "gather") == Bytes{2 * 128 * (256 + 256)});
    // Queries of a GPU's heads and the shared keys: 4 m (a/t + 1) d.
    const auto traffic = queries<costdb::Elementwise>(forward).front().traffic;
    CHECK(traffic == Bytes{20 * 128 * 1024 / 4 + 4 * 128 * (2 + 1) * 128 + 2 * 128 * 3 * 4096 / 4});
}

TEST_CASE("input and weight gradient of experts and compressed attention together cost about a full backward") {
    const auto costs = costdb::CostDatabase::embedded("h100_sxm");
    const PassShape large{{4096, 4096}};
    for (const auto& network : {with_experts(), latent(), factored()}) {
        const auto time = [&](PassKind pass) {
            const Layout layout{.tp = 4, .ep = network.moe ? 4 : 1};
            const auto operators = layer_operators(network, large, layout, pass, network.layers - 1);
            return static_cast<double>(price(operators, costs, {}).total().count());
        };
        CHECK(time(PassKind::input_gradient) + time(PassKind::weight_gradient) ==
              doctest::Approx(time(PassKind::backward)).epsilon(0.02));
    }
}

TEST_CASE("a part of the experts takes its part of the whole layer's time, and a backward 2.05 times the forward") {
    const auto costs = costdb::CostDatabase::embedded("h100_sxm");
    const costdb::MixtureOfExperts layer{.tokens = 8192, .hidden = 4096, .ffn = 14336, .top_k = 2, .experts = 8};
    const auto whole = costs.cost(layer);
    const auto asked = [&](std::int64_t gpus, costdb::Pass pass, bool gated = true) {
        return ask(costs, Operator{"experts", Experts{layer, gpus, gated, pass}});
    };
    const auto ns = [](const costdb::Cost& cost) { return static_cast<double>(cost.duration.count()); };
    CHECK(whole.basis == costdb::Basis::exact);
    CHECK(asked(1, costdb::Pass::forward).duration == whole.duration);
    CHECK(asked(1, costdb::Pass::forward).basis == costdb::Basis::exact);
    CHECK(ns(asked(4, costdb::Pass::forward)) == doctest::Approx(ns(whole) / 4));
    CHECK(asked(4, costdb::Pass::forward).basis == costdb::Basis::extrapolated);
    CHECK(ns(asked(1, costdb::Pass::backward)) == doctest::Approx(2.05 * ns(whole)));
    CHECK(asked(1, costdb::Pass::backward).basis == costdb::Basis::interpolated);
    CHECK(ns(asked(1, costdb::Pass::forward, false)) == doctest::Approx(ns(whole) * 2 / 3));
}

TEST_CASE("a block's parameters are split, copied, or whole experts, and no other") {
    std::size_t checked = 0;
    for (const auto& network : workloads::architectures())
        for (std::int64_t layer = 0; layer < network.layers; ++layer) {
            const auto parts = workloads::layer_parameter_parts(network, layer);
            CHECK(parts.split + parts.copied + parts.experts == workloads::layer_parameters(network, layer));
            checked += parts.experts > 0;
        }
    CHECK(checked > 100);
    // DeepSeek-V2: down projections to ranks 1536 and 512 + 64, and a router of 160.
    const auto v2 = workloads::layer_parameter_parts(workloads::architecture("deepseek-v2"), 1);
    CHECK(v2.copied == 5120 * (1536 + 512 + 64 + 160));
    CHECK(v2.experts == 160LL * 3 * 5120 * 1536);
}

TEST_CASE("activations of experts, latent and factored attention are spread by tensor parallelism") {
    const std::int64_t m = 64, h = 1024, norms = 8 * h;
    const std::int64_t ranks = 2 * (2 * 256 + 2 * 192 + 32), heads = 2 * 8 * (2 * 96 + 64 + 2 * 48);
    CHECK(workloads::layer_activations(latent(), 0, m, 0, 4) == Bytes{m * (norms + ranks + heads + 6 * 4096) / 4});
    // The shared keys and values stand whole on every GPU.
    CHECK(workloads::layer_activations(factored(), 0, m, 0, 4) ==
          Bytes{m * (norms + 4 * 256 + 4 * 1024 + 6 * 4096) / 4 + m * 4 * 128});
    const std::int64_t experts = 6 * 1024 + 2 * 2 * (h + 3 * 512) + 8 * 8;
    CHECK(workloads::layer_activations(with_experts(), 1, m, 0, 4) == Bytes{m * (norms + 8 * h + experts) / 4});
    CHECK(workloads::layer_activations(with_experts(), 0, m, 0, 4) == Bytes{m * (norms + 8 * h + 6 * 4096) / 4});
    CHECK(workloads::layer_backward_workspace(with_experts(), 1, m, 4) == Bytes{4 * m * 2 * 512 / 4});
    CHECK(workloads::layer_backward_workspace(with_experts(), 0, m, 4) == Bytes{4 * m * 4096 / 4});
}

TEST_CASE("weight gradients need the inputs of all linear layers and the gradients of their outputs") {
    const std::int64_t m = 64, h = 1024;
    const auto check = [&](const workloads::Architecture& network, std::int64_t layer, std::int64_t inputs,
                           std::int64_t gradients, std::int64_t gathered) {
        const auto needs = workloads::weight_gradient_needs(network, layer, m, 0, 4);
        CHECK(needs.inputs == Bytes{m * inputs / 4});
        CHECK(needs.gradients == Bytes{m * gradients / 4 + m * gathered});
    };
    const std::int64_t up_input = 2 * h + 2 * 4096, up_gradient = 2 * 2 * 4096;
    check(latent(), 0, 2 * (h + 256 + 192) + 2 * 8 * 48 + up_input,
          2 * (256 + 192 + 32) + 2 * 8 * (96 + 64 + 48) + up_gradient, 4 * h);
    check(factored(), 0, 2 * (h + 256) + 2 * h + up_input, 2 * (256 + 2 * 128) + 2 * h + up_gradient, 4 * h);
    check(with_experts(), 1, 4 * h + 2 * h + 2 * 1024 + 2 * 2 * (h + 512),
          6 * h + 2 * 2 * 1024 + 2 * 2 * (h + 2 * 512) + 4 * 8, 4 * h);
    auto alone = with_experts();
    alone.moe->shared_ffn = 0;  // nothing is scattered behind the experts
    check(alone, 1, 4 * h + 2 * h + 2 * 2 * (h + 512), 6 * h + 2 * 2 * (h + 2 * 512) + 4 * 8, 2 * h);
}

// Two layers, the second with experts: attention 4 * 1024^2, dense 3 * 1024 * 4096, shared 3 * 1024^2, router 8 * 1024,
// experts 8 * 3 * 1024 * 512; embedding and head 32000 * 1024 each.
TEST_CASE("a rank holds its experts whole and shares their optimizer state out among their copies") {
    constexpr std::int64_t h = 1024, attention = 4 * h * h, dense = 12 * h * h, shared = 3 * h * h, table = 32000 * h;
    constexpr std::int64_t expert = 3 * h * 512, router = 8 * h;
    const OneChain run(with_experts(), {.tp = 2, .pp = 1, .dp = 4, .ep = 4});

    const auto rank = rank_parameters(run.input).front();
    CHECK(rank.trained() == (2 * attention + dense + shared + 2 * table) / 2 + router);
    CHECK(rank.experts() == 8 / 4 * expert);
    CHECK(rank.largest_layers == (attention + dense + shared) / 2 + expert + table / 2);

    const auto memory = static_memory(run.input).front();
    CHECK(memory.weights == Bytes{2 * (rank.trained() + rank.experts())});
    CHECK(memory.gradients == Bytes{4 * (rank.trained() + rank.experts())});
    CHECK(memory.optimizer == Bytes{12 * rank.trained() / 4 + 12 * rank.experts() / 2});
}

TEST_CASE("what of a layer every tensor parallel GPU has is whole in what is gathered of it") {
    testing::SmallWorkload plain({.tp = 2, .pp = 1, .dp = 1}), embedded({.tp = 2, .pp = 1, .dp = 1});
    embedded.model.modules[1].architecture.layer_embedding = 64;
    const auto largest = [](const testing::SmallWorkload& workload) {
        const auto cut = workload.cut("megatron");
        return rank_parameters(workload.input(cut))[0].largest_layers;
    };
    CHECK(largest(embedded) - largest(plain) == 2 * 2048 * 64);
}

TEST_CASE("frozen experts lie in as many shards as trained ones") {
    OneChain run(with_experts(), {.tp = 1, .pp = 1, .dp = 4, .ep = 4});  // one copy of each expert
    run.setup.recipe.zero = 3;
    const auto trained = static_memory(run.input).front().weights;
    const auto rank = rank_parameters(run.input).front();
    CHECK(trained == Bytes{2 * rank.trained() / 4 + 2 * rank.experts()});
    run.setup.model.modules.front().trainable = false;
    CHECK(static_memory(run.input).front().weights == trained);
}

TEST_CASE("shards that whole weights are gathered of lie beside them, frozen ones' too") {
    OneChain run(with_experts(), {.tp = 1, .pp = 1, .dp = 4, .ep = 4});
    run.setup.recipe.state.apart = 2;
    const auto rank = rank_parameters(run.input).front();
    const Bytes whole{2 * (rank.trained() + rank.experts())}, shards{2 * rank.trained() / 4 + 2 * rank.experts()};
    for (const auto& [zero, weights] : {std::pair{1, whole}, std::pair{2, whole + shards}, std::pair{3, shards}}) {
        CAPTURE(zero);
        run.setup.recipe.zero = zero;
        run.setup.model.modules.front().trainable = true;
        CHECK(static_memory(run.input).front().weights == weights);
        run.setup.model.modules.front().trainable = false;
        CHECK(static_memory(run.input).front().weights == weights);
    }
}

TEST_CASE("gradients of one microbatch are shared out where those of several are added up whole") {
    OneChain run(with_experts(), {.tp = 1, .pp = 1, .dp = 4, .ep = 4});
    run.setup.recipe.zero = 2;
    run.setup.recipe.state.summed = 2;
    const auto rank = rank_parameters(run.input).front();
    CHECK(static_memory(run.input).front().gradients == Bytes{4 * rank.trained() / 4 + 4 * rank.experts()});
    run.input.units.push_back(run.input.units.front());
    CHECK(static_memory(run.input).front().gradients == Bytes{2 * (rank.trained() + rank.experts())});
    run.setup.recipe.zero = 1;
    CHECK(static_memory(run.input).front().gradients == Bytes{4 * (rank.trained() + rank.experts())});
}

TEST_CASE("weights that one GPU alone has may lie as without shards") {
    OneChain run(with_experts(), {.tp = 1, .pp = 1, .dp = 4, .ep = 4});
    auto& recipe = run.setup.recipe;
    recipe.zero = 2;
    recipe.state.apart = 2;
    recipe.state.whole = 8;
    const auto rank = rank_parameters(run.input).front();
    const auto wrapped = static_memory(run.input).front();
    recipe.state.bare = true;
    const auto bare = static_memory(run.input).front();
    CHECK(wrapped.weights - bare.weights == Bytes{2 * rank.experts()});
    CHECK(bare.gradients == Bytes{8 * rank.trained() + 4 * rank.experts()});
    recipe.zero = 1;  // then no shares lie beside them, and gradients are not shared out
    CHECK(static_memory(run.input).front().gradients == Bytes{(4 + 8) * rank.trained() + 4 * rank.experts()});
}

TEST_CASE("no more weights lie gathered than there are") {
    OneChain run(with_experts(), {.tp = 1, .pp = 1, .dp = 4, .ep = 4});
    run.setup.recipe.zero = 3;
    const auto rank = rank_parameters(run.input).front();
    const Bytes all{2 * (rank.trained() + rank.experts())};
    const auto gathers = [&](Bytes gathered) {
        run.setup.recipe.gathered = gathered;
        return static_memory(run.input).front().workspace;
    };
    CHECK(gathers(1_MiB) - gathers(Bytes{}) == 1_MiB);
    CHECK(gathers(1024_GiB) - gathers(Bytes{}) == all);
}

TEST_CASE("gradients of experts are reduced over their own copies") {
    const OneChain run(with_experts(), {.tp = 2, .pp = 1, .dp = 8, .ep = 4});  // two nodes
    const auto rank = rank_parameters(run.input).front();
    const auto ends = ends_of_ranks(run.input);
    const auto all = queries<costdb::Collective>(ends);
    REQUIRE(all.size() == 4);
    CHECK(all[0].kind == costdb::CollectiveKind::reduce_scatter);
    CHECK((all[0].gpus == 8 && all[0].gpus_per_node == 4));  // every other GPU
    CHECK(all[0].message == Bytes{4 * rank.trained()});
    CHECK((all[2].gpus == 4 && all[2].gpus_per_node == 2));  // every fourth
    CHECK(all[2].message == Bytes{4 * rank.experts()});
    CHECK(all[3].message == Bytes{2 * rank.experts()});
    const auto updates = queries<costdb::Elementwise>(ends);
    REQUIRE(updates.size() == 2);
    CHECK(updates[0].traffic == Bytes{34 * ((rank.trained() + 7) / 8) + 8 * rank.trained()});
    CHECK(updates[1].traffic == Bytes{34 * ((rank.experts() + 3) / 4) + 8 * rank.experts()});
}

TEST_CASE("of split experts a rank holds parts, whose copies lie as many GPUs apart") {
    OneChain run(with_experts(), {.tp = 2, .pp = 1, .dp = 8, .ep = 4});  // two nodes
    const auto whole = rank_parameters(run.input).front();
    run.setup.recipe.execution.experts.tensor_parallel = 2;
    const auto rank = rank_parameters(run.input).front();
    CHECK(rank.trained() == whole.trained());
    CHECK(rank.experts() == whole.experts() / 2);
    CHECK(whole.largest_layers - rank.largest_layers == 3 * 1024 * 512 / 2);
    // Two copies of each, one in either node: as much optimizer state as four copies of whole ones.
    CHECK(static_memory(run.input).front().optimizer == Bytes{12 * rank.trained() / 8 + 12 * rank.experts() / 2});
    const auto all = queries<costdb::Collective>(ends_of_ranks(run.input));
    REQUIRE(all.size() == 4);
    CHECK((all[2].gpus == 2 && all[2].gpus_per_node == 1));
    CHECK(all[2].message == Bytes{4 * rank.experts()});
    CHECK(all[3].message == Bytes{2 * rank.experts()});
    const auto updates = queries<costdb::Elementwise>(ends_of_ranks(run.input));
    REQUIRE(updates.size() == 2);
    CHECK(updates[1].traffic == Bytes{34 * ((rank.experts() + 1) / 2) + 8 * rank.experts()});
}

TEST_CASE("GPUs of a split expert keep what they gathered of each other") {
    const auto network = with_experts();
    const Layout layout{.tp = 4, .dp = 2, .ep = 2};
    const auto kept = [&](std::int64_t layer, std::int64_t gpus) {
        Recipe recipe;
        recipe.execution.experts.tensor_parallel = gpus;
        return block_activations(network, layer, shape, layout, recipe).count;
    };
    // 32 own positions, 2 copies each, of three more GPUs.
    CHECK(kept(1, 4) - kept(1, 1) == 3 * 2 * 2 * 32 * 1024);
    CHECK(kept(0, 4) == kept(0, 1));
    OneChain run(network, {.tp = 2, .pp = 1, .dp = 8, .ep = 4});
    const auto memory = [&](std::int64_t gpus) {
        run.setup.recipe.execution.experts.tensor_parallel = gpus;
        return pass_memory(run.input, run.input.chains.front().stages.front(), {PassShape{{4096}}}, {}, true);
    };
    const auto whole = memory(1), split = memory(2);
    CHECK((split.held - whole.held).count == 2 * 2 * 2048 * 1024);
    CHECK((split.kept - whole.kept).count == 2 * 2 * 2 * 2048 * 1024);  // inputs and gradients of outputs
}

TEST_CASE("the fullest GPU holds more of its experts' tokens while weight gradients wait and while a backward runs") {
    OneChain run(with_experts(3), {.tp = 2, .pp = 1, .dp = 8, .ep = 8});
    const StageLayers stage{RankId{0}, {{0, 1, 1}}};  // a block with experts, without what stands around
    const auto memory = [&](double imbalance, std::int64_t gpus, Recompute recompute) {
        ExpertParallel& experts = run.setup.recipe.execution.experts;
        experts.imbalance = imbalance;
        experts.tensor_parallel = gpus;
        return pass_memory(run.input, stage, {PassShape{{4096}}}, recompute, true);
    };
    const auto even = memory(1, 1, {}), fullest = memory(1.5, 1, {});
    // Half of its 2 * 2048 copies; between I and W inputs (1024 + 512) and gradients
    // (1024 + 2 * 512), in the backward the gradient of the up projection, 2 * 512; 2 bytes each.
    CHECK((fullest.held - even.held).count == 2048 * (1024 + 3 * 512) * 2);
    CHECK((fullest.kept - even.kept).count == 2048 * (1024 + 512 + 1024 + 2 * 512) * 2);
    CHECK((fullest.transient - even.transient).count == 2048 * 2 * 512 * 2);
    // What is computed again is not held: the activation.
    CHECK((memory(1.5, 1, Recompute::selective).held - memory(1, 1, Recompute::selective).held).count ==
          2048 * (1024 + 2 * 512) * 2);
    // And the tokens of the other GPU of a split expert: inputs, and gradients of outputs.
    CHECK((memory(1.5, 2, {}).held - fullest.held).count == 3 * 2048 * 1024 * 2);
}

TEST_CASE("published networks with experts build steps of plausible length") {
    struct Case {
        const char* network;
        Layout layout;
    };
    for (const Case& one : {Case{"mixtral-8x7b", {.tp = 2, .pp = 4, .dp = 4, .ep = 8}},
                            Case{"deepseek-v2", {.tp = 8, .pp = 15, .dp = 2, .ep = 16}},
                            Case{"step3-316b-llm", {.tp = 8, .pp = 16, .dp = 2, .ep = 16}}}) {
        const std::string name = one.network;
        const Layout& layout = one.layout;
        CAPTURE(name);
        const OneChain run(workloads::architecture(name), layout);
        const auto step = require_step(build_step(run.input));
        CHECK(step.problem.tasks.size() == 2 * static_cast<std::size_t>(layout.pp));
        Duration sum{};
        for (const Task& task : step.problem.tasks) sum += task.duration;
        // 4096 tokens on tp GPUs at a time.
        const double share = step.model_flops / (1e-9 * static_cast<double>(sum.count())) /
                             (static_cast<double>(layout.tp) * workloads::device("h100_sxm").bf16_flops);
        CHECK(share > 0.1);
        CHECK(share < 0.7);
    }
}

TEST_CASE("exchanges of experts are not hidden, and are slowed down where collectives are") {
    const auto costs = costdb::CostDatabase::embedded("h100_sxm");
    const auto all = layer_operators(with_experts(), {{4096}}, {.tp = 4, .ep = 4}, PassKind::forward, 1);
    const Operator& dispatch = named(all, "dispatch");
    const auto alone = static_cast<double>(ask(costs, dispatch).duration.count());
    const auto in_step = [&](double collectives, double inside_gemms) {
        InSituFactors factors;
        factors.factors = {.products = 1.1, .traffic = collectives};
        factors.inside_gemms = inside_gemms;
        return static_cast<double>(price(std::span(&dispatch, 1), costs, factors).total().count());
    };
    CHECK(in_step(1, 0.35) == doctest::Approx(alone));
    CHECK(in_step(1.2, 1) == doctest::Approx(1.2 * alone));
}
