// Adapters beside frozen weights: what is launched, trained, kept and counted, worked by hand.
#include "emulator/pricing/data_traffic.hpp"
#include "emulator/pricing/stage_memory.hpp"
#include "emulator/step/step_parts.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "tests/support/queries.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using testing::queries;

namespace {

constexpr std::int64_t hidden = 2048, rank = 16, m = 1024;
const PassShape shape{{m}};

workloads::Architecture network() { return testing::small_network(workloads::ModuleKind::language_model, 2, hidden); }

std::vector<Operator> layer(PassKind pass, const Layout& layout = {}, workloads::Adapters adapters = {.rank = rank}) {
    Execution execution;
    execution.adapters = adapters;
    return layer_operators(network(), shape, layout, pass, 0, execution);
}

std::vector<std::string> names(const std::vector<Operator>& operators) {
    std::vector<std::string> all;
    all.reserve(operators.size());
    for (const auto& op : operators) all.emplace_back(op.name);
    return all;
}

std::vector<costdb::Gemm> gemms(const std::vector<Operator>& operators, std::string_view name) {
    std::vector<costdb::Gemm> all;
    for (const auto& op : operators)
        if (op.name == name) all.push_back(std::get<costdb::Gemm>(op.query));
    return all;
}

std::int64_t columns_of_qkv() {
    const auto of = network();
    return (of.heads + 2 * of.kv_heads) * of.head_dim;
}

// The small model with its language model frozen, but for adapters.
testing::SmallWorkload adapted(const Layout& layout = {.tp = 2, .pp = 2}) {
    testing::SmallWorkload workload(layout);
    auto& llm = workload.model.modules.back();
    llm.trainable = false;
    llm.adapters = workloads::Adapters{.rank = rank};
    return workload;
}

}  // namespace

TEST_CASE("beside each projection run two thin products, and a sum of their output") {
    const auto forward = layer(PassKind::forward);
    CHECK(names(forward) == std::vector<std::string>{"norms and activations", "qkv", "adapter down", "adapter up",
                                                     "adapter sum", "attention", "attention output", "adapter down",
                                                     "adapter up", "adapter sum", "up", "adapter down", "adapter up",
                                                     "adapter sum", "down", "adapter down", "adapter up",
                                                     "adapter sum"});
    const auto down = gemms(forward, "adapter down"), up = gemms(forward, "adapter up");
    CHECK((down.front().m == m && down.front().n == rank && down.front().k == hidden));
    CHECK((up.front().m == m && up.front().n == columns_of_qkv() && up.front().k == rank));
    CHECK(queries<costdb::Elementwise>(forward)[1].traffic == Bytes{6 * m * columns_of_qkv()});
    CHECK(names(layer(PassKind::forward, {}, {rank, true, false, false, false})) ==
          std::vector<std::string>{"norms and activations", "qkv", "adapter down", "adapter up", "adapter sum",
                                   "attention", "attention output", "up", "down"});
}

TEST_CASE("of latent attention what leads down to its ranks has whole adapters, what leads up to its heads is split") {
    const auto model = workloads::model("deepseek-v3");
    const auto& latent = model.modules[0].architecture;  // 7168 wide, 128 heads
    const auto to_heads = workloads::adapter_parameters(latent, 0, {rank, true, false, false, false});
    // Up to 128 heads of 128 + 64 columns of queries, and of 128 + 128 of keys and values.
    CHECK(to_heads.split == rank * (128 * 192 + 128 * 256));
    // Down to 1536 of queries, 512 + 64 of keys and values, both from 7168, and the ranks that are led up.
    CHECK(to_heads.copied == rank * (7168 + 1536 + 7168 + 576 + 1536 + 512));
    const auto output = workloads::adapter_parameters(latent, 0, {rank, false, true, false, false});
    CHECK((output.split == rank * 128 * 128 && output.copied == rank * 7168));
    Execution execution;
    execution.adapters = workloads::Adapters{rank, true, false, false, false};
    const auto forward = layer_operators(latent, shape, {}, PassKind::forward, 0, execution);
    const auto up = gemms(forward, "adapter up");
    REQUIRE(up.size() == 4);
    CHECK((up[0].n == 1536 && up[1].n == 128 * 192 && up[2].n == 576 && up[3].n == 128 * 256));
}

TEST_CASE("frozen products have no weight gradient, adapters have theirs") {
    const auto backward = layer(PassKind::backward);
    for (const auto* name : {"qkv", "attention output", "up", "down"})
        CHECK(gemms(backward, name).front().pass == costdb::Pass::backward_input);
    for (const auto& gemm : gemms(backward, "adapter up")) CHECK(gemm.pass == costdb::Pass::backward);
    CHECK(queries<costdb::Elementwise>(backward)[1].traffic == Bytes{6 * m * hidden});

    // A weight gradient of its own is of adapters alone.
    const auto weights = layer(PassKind::weight_gradient);
    CHECK(names(weights) == std::vector<std::string>{"adapter down", "adapter up", "adapter down", "adapter up",
                                                     "adapter down", "adapter up", "adapter down", "adapter up"});
    CHECK(layer(PassKind::weight_gradient, {}, {rank, false, true, false, false}).size() == 2);
}

TEST_CASE("tensor parallelism splits the thin matrix on the side that the frozen one is split on") {
    const auto forward = layer(PassKind::forward, {.tp = 2});
    const auto down = gemms(forward, "adapter down"), up = gemms(forward, "adapter up");
    CHECK((down[0].k == hidden && up[0].n == columns_of_qkv() / 2));                      // qkv: columns
    CHECK((down[1].k == network().heads * network().head_dim / 2 && up[1].n == hidden));  // output: rows
    // What is gathered for the weight gradient is the adapters' input; without them nothing is.
    const auto gathers = [](const std::vector<Operator>& operators) {
        return std::count_if(operators.begin(), operators.end(),
                             [](const Operator& op) { return op.name == "gather for weights"; });
    };
    CHECK(gathers(layer(PassKind::backward, {.tp = 2})) == 2);
    CHECK(gathers(layer(PassKind::backward, {.tp = 2}, {rank, true, false, false, false})) == 1);
}

TEST_CASE("adapters alone have gradients and optimizer state, and are counted so") {
    const auto of = network();
    const auto parts = workloads::adapter_parameters(of, 0, {.rank = rank});
    const std::int64_t queries = of.heads * of.head_dim, up = (of.gated ? 2 : 1) * of.ffn;
    CHECK(parts.split == rank * (columns_of_qkv() + queries + up + of.ffn));
    CHECK(parts.copied == rank * 4 * hidden);
    CHECK(workloads::adapted_matrices(of, 0, {rank, true, true, false, false}) == 2);

    const auto full = testing::SmallWorkload({.tp = 2, .pp = 2}), few = adapted();
    const auto cut_full = full.cut("uniform"), cut_few = few.cut("uniform");
    const auto all = rank_parameters(full.input(cut_full)), thin = rank_parameters(few.input(cut_few));
    const auto& llm = few.model.modules.back().architecture;
    std::int64_t adapters = 0, frozen = 0, trained_before = 0, trained = 0;
    for (std::int64_t i = 0; i < llm.layers; ++i)
        adapters += workloads::adapter_parameters(llm, i, {.rank = rank}).common(2);
    for (std::size_t r = 0; r < all.size(); ++r) {
        trained_before += all[r].trained();
        trained += thin[r].trained();
        frozen += thin[r].groups[0].frozen;
    }
    CHECK(trained == trained_before - frozen + adapters);
    CHECK(frozen > 0);

    // Forward and input gradients of the frozen, three passes of adapters.
    const double tokens = [&] {
        double sum = 0;
        for (const auto& microbatch : few.microbatches) sum += static_cast<double>(microbatch.tokens);
        return sum;
    }();
    std::int64_t whole = 0;
    for (std::int64_t i = 0; i < llm.layers; ++i)
        whole += workloads::adapter_parameters(llm, i, {.rank = rank}).common(1);
    auto without = adapted();
    without.model.modules.back().adapters.reset();
    const auto cut = without.cut("uniform");
    CHECK(model_flops(few.input(cut_few)) ==
          doctest::Approx(model_flops(without.input(cut)) + 6 * tokens * static_cast<double>(whole)));
}

TEST_CASE("a stage with adapters takes longer than frozen, less than trained, whatever is kept of costs") {
    const auto time = [](const testing::SmallWorkload& workload, PassKind pass, LayerCosts::Store store) {
        LayerCosts costs(workload, 0, store);
        std::vector<PassShape> shapes(workload.model.modules.size());
        shapes.back() = PassShape{{2048}};
        const auto& llm = workload.model.modules.back().architecture;
        StageLayers stage;
        stage.parts = {{workload.model.modules.size() - 1, 0, llm.layers}};
        return costs.stage(stage, shapes, pass).time;
    };
    auto few = adapted(Layout{}), frozen = adapted(Layout{});
    const testing::SmallWorkload full(Layout{});
    frozen.model.modules.back().adapters.reset();
    const auto own = LayerCosts::Store::own;
    CHECK(time(few, PassKind::forward, own) > time(full, PassKind::forward, own));
    CHECK(time(few, PassKind::backward, own) > time(frozen, PassKind::backward, own));
    CHECK(time(few, PassKind::backward, own) < time(full, PassKind::backward, own));
    few.store = std::make_shared<LayerStore>();
    const auto first = time(few, PassKind::backward, LayerCosts::Store::shared);
    CHECK(first == time(few, PassKind::backward, LayerCosts::Store::shared));
    CHECK(first == time(few, PassKind::backward, own));
}

TEST_CASE("routed experts have a pair each or one together, which all that reaches them passes") {
    auto of = network();
    of.moe = workloads::MixtureOfExperts{.moe_layers = 2, .every = 1, .experts = 16, .top_k = 2, .expert_ffn = 512};
    workloads::Adapters adapters{.rank = rank, .qkv = false, .output = false};
    CHECK(workloads::expert_adapter_parameters(of, 0, adapters) == 0);
    CHECK(workloads::adapter_activations(of, 0, adapters, m, 2) == Bytes{});
    adapters.experts = workloads::ExpertAdapters::each;
    CHECK(workloads::expert_adapter_parameters(of, 0, adapters) == rank * (2 * hidden + 3 * 512));
    CHECK(workloads::adapter_activations(of, 0, adapters, m, 2) == Bytes{2 * m * rank * 2 * 2 / 2});

    Execution execution;
    execution.adapters = adapters;
    const Layout layout{.tp = 1, .ep = 4};
    const auto forward = layer_operators(of, shape, layout, PassKind::forward, 0, execution);
    const auto down = gemms(forward, "adapter down"), up = gemms(forward, "adapter up");
    REQUIRE(down.size() == 2);
    CHECK((down[0].m == 2 * m && down[0].n == rank && down[0].k == hidden));
    CHECK((up[0].n == 2 * 512 && up[1].n == hidden));

    const auto own = [&](workloads::ExpertAdapters experts) {
        adapters.experts = experts;
        return adapters_of_experts(of, 0, adapters, layout, {}).parameters;
    };
    CHECK(own(workloads::ExpertAdapters::each) == 4 * own(workloads::ExpertAdapters::together));
    CHECK(own(workloads::ExpertAdapters::together) == rank * (2 * hidden + 3 * 512));
    CHECK(own(workloads::ExpertAdapters::none) == 0);
}

TEST_CASE("adapters apart have rows of their own for queries, keys and values, and for gate and up") {
    auto of = network();
    of.moe = workloads::MixtureOfExperts{.moe_layers = 1, .every = 1, .experts = 16, .top_k = 2, .expert_ffn = 512};
    const workloads::Adapters together{.rank = rank, .experts = workloads::ExpertAdapters::each};
    auto apart = together;
    apart.apart = true;
    REQUIRE(of.gated);
    CHECK(workloads::adapted_matrices(of, 1, together) == 4);
    CHECK(workloads::adapted_matrices(of, 1, apart) == 7);
    const auto one = workloads::adapter_parameters(of, 1, together), each = workloads::adapter_parameters(of, 1, apart);
    CHECK(each.split == one.split);
    CHECK(each.copied == one.copied + rank * 3 * hidden);
    CHECK(workloads::expert_adapter_parameters(of, 0, apart) ==
          workloads::expert_adapter_parameters(of, 0, together) + rank * hidden);
}
