// Sequences in parts: what each GPU of a context parallel group launches, worked out by hand.
#include "pipeweaver/emulator/step.hpp"
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

constexpr std::int64_t hidden = 2048, heads = 16, dim = 128;
const PassShape shape{{1024}};
const Layout exchanged{.tp = 2, .cp = 2};
const Layout ring{.cp = 2, .context = ContextParallel::ring};

std::vector<Operator> layer(const Layout& layout, PassKind pass = PassKind::forward, const PassShape& of = shape) {
    return layer_operators(testing::small_network(workloads::ModuleKind::language_model, 2, hidden), of, layout, pass);
}

std::vector<std::string> names(const std::vector<Operator>& operators) {
    std::vector<std::string> all;
    all.reserve(operators.size());
    for (const Operator& op : operators) all.emplace_back(op.name);
    return all;
}

using After = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("all of a layer but its attention works on a part of the positions") {
    const auto whole = layer({}), part = layer(exchanged);
    for (const auto& gemm : queries<costdb::Gemm>(whole)) CHECK(gemm.m == 1024);
    for (const auto& gemm : queries<costdb::Gemm>(part)) CHECK(gemm.m == 512);
    for (const Operator& op : part)
        if (op.stream == Stream::tensor)
            CHECK(std::get<costdb::Collective>(op.query).message == Bytes{2 * 512 * hidden});
    // 1026 positions are 513 on a GPU, which are padded to whole tiles.
    CHECK(queries<costdb::Gemm>(layer(ring, PassKind::forward, {{1026}})).front().m == 640);
}

TEST_CASE("an all-to-all gives each GPU whole sequences for its part of the heads, another one takes them back") {
    const auto forward = layer(exchanged);

    REQUIRE(names(forward) == std::vector<std::string>{"norms and activations", "gather", "qkv",
                                                       "exchange queries and keys", "attention", "exchange outputs",
                                                       "attention output", "scatter", "gather", "up", "down",
                                                       "scatter"});
    const auto& attention = std::get<PackedAttention>(forward[4].query);
    CHECK(attention.lengths == std::vector<std::int64_t>{1024});
    CHECK((attention.shape.q_heads == 4 && attention.shape.kv_heads == 4 && attention.shape.causal));
    const auto& in = std::get<costdb::Collective>(forward[3].query);
    const auto& out = std::get<costdb::Collective>(forward[5].query);
    CHECK((in.kind == costdb::CollectiveKind::all_to_all && in.gpus == 2));
    CHECK(in.message == Bytes{2 * 512 * 3 * heads * dim / 2});
    CHECK(out.message == Bytes{2 * 512 * heads * dim / 2});
    for (const std::size_t i : {3U, 5U}) CHECK((forward[i].stream == Stream::context && forward[i].after.empty()));
}

TEST_CASE("the backward exchanges gradients the other way, and weight gradients need none") {
    const auto backward = layer(exchanged, PassKind::input_gradient);
    const auto attention = std::find_if(backward.begin(), backward.end(),
                                        [](const Operator& op) { return op.kind() == OperatorClass::attention; });
    REQUIRE(attention != backward.end());
    CHECK((attention - 1)->name == "exchange output gradients");
    CHECK(std::get<costdb::Collective>((attention - 1)->query).message == Bytes{2 * 512 * heads * dim / 2});
    CHECK((attention + 1)->name == "exchange query and key gradients");
    CHECK(std::get<costdb::Collective>((attention + 1)->query).message == Bytes{2 * 512 * 3 * heads * dim / 2});
    for (const Layout& layout : {exchanged, ring})
        for (const Operator& op : layer(layout, PassKind::weight_gradient))
            CHECK((op.stream != Stream::context && op.kind() != OperatorClass::attention));
}

TEST_CASE("grouped keys that are fewer than the GPUs of a rank travel once for each of them") {
    auto network = testing::small_network(workloads::ModuleKind::language_model, 2, hidden);
    network.kv_heads = 2;
    const auto operators = layer_operators(network, shape, {.tp = 2, .cp = 4}, PassKind::forward);
    const auto attention = queries<PackedAttention>(operators).front();
    CHECK((attention.shape.q_heads == 2 && attention.shape.kv_heads == 1));
    // 8 heads of queries on a tensor parallel GPU, keys and values of 8 heads for 8 GPUs, 4 of them on each.
    const auto found = std::find_if(operators.begin(), operators.end(),
                                    [](const Operator& op) { return op.stream == Stream::context; });
    CHECK(std::get<costdb::Collective>(found->query).message == Bytes{2 * 256 * (8 + 2 * 4) * dim});
}

TEST_CASE("in a ring the next keys travel while those at hand are attended to") {
    const auto forward = layer(ring);

    REQUIRE(names(forward) == std::vector<std::string>{"norms and activations", "qkv", "send keys", "attention",
                                                       "attention", "attention output", "up", "down"});
    CHECK((forward[2].stream == Stream::context && forward[2].after == After{1}));
    CHECK(std::get<costdb::PointToPoint>(forward[2].query).message == Bytes{2 * 512 * 2 * heads * dim});
    CHECK((forward[3].stream == Stream::compute && forward[3].after == After{1}));
    CHECK(forward[4].after == After{2, 3});
    CHECK(forward[5].after.empty());
    // Zigzag: a GPU has the first and the last quarter, or both in the middle. Its own positions are a causal square of
    // 512, of the other's keys all see half or half see all: 512 x 256.
    const auto own = std::get<PackedAttention>(forward[3].query), other = std::get<PackedAttention>(forward[4].query);
    CHECK((own.shape.causal && own.lengths == std::vector<std::int64_t>{512} && own.keys.empty()));
    CHECK((!other.shape.causal && other.lengths == std::vector<std::int64_t>{512}));
    CHECK(other.keys == std::vector<std::int64_t>{256});
    CHECK((own.shape.q_heads == heads && own.shape.kv_heads == heads));
}

TEST_CASE("in a ring's backward gradients of keys go all the way round behind their keys") {
    const auto backward = layer(ring, PassKind::backward);
    const auto all = names(backward);
    REQUIRE(std::vector(all.begin() + 2, all.begin() + 8) ==
            std::vector<std::string>{"send keys", "attention", "send key gradients", "attention", "send key gradients",
                                     "attention output"});
    CHECK(backward[3].after == After{1});
    CHECK(backward[4].after == After{3});
    CHECK(backward[5].after == After{2, 3});
    CHECK(backward[6].after == After{5});
    for (const std::size_t i : {2U, 4U, 6U})
        CHECK(std::get<costdb::PointToPoint>(backward[i].query).message == Bytes{2 * 512 * 2 * heads * dim});
}

TEST_CASE("a ring of four takes three turns, each behind the one in front of it") {
    const auto operators = layer({.cp = 4, .context = ContextParallel::ring});
    const auto all = names(operators);
    CHECK(std::count(all.begin(), all.end(), "send keys") == 3);
    CHECK(std::count(all.begin(), all.end(), "attention") == 4);
    // 2 send, 3 attention, 4 ... : sends are handed on from one another, so that step 2 waits for the second.
    CHECK(operators[4].name == "send keys");
    CHECK(operators[4].after == After{2});
    CHECK(operators[5].after == After{2, 3});
    CHECK(operators[7].after == After{4, 5});
    CHECK(operators[8].after == After{6, 7});
}

TEST_CASE("where attention is not causal a ring's steps are alike, and windows stay on one GPU") {
    auto network = testing::small_network(workloads::ModuleKind::vision_encoder, 2, 1024);
    const auto steps = queries<PackedAttention>(layer_operators(network, shape, ring, PassKind::forward));
    REQUIRE(steps.size() == 2);
    for (const auto& step : steps)
        CHECK((!step.shape.causal && step.keys.empty() && step.lengths == std::vector<std::int64_t>{512}));

    network.attention.kind = workloads::AttentionKind::windowed;
    network.attention.window = 64;
    const auto operators = layer_operators(network, shape, ring, PassKind::forward);
    const auto windows = queries<PackedAttention>(operators);
    REQUIRE(windows.size() == 1);
    CHECK(windows.front().lengths == std::vector<std::int64_t>(8, 64));
    CHECK(queries<costdb::PointToPoint>(operators).empty());
}

TEST_CASE("groups that fit a node stay inside it, others cross the network with their share of it") {
    const auto exchange = [](const Layout& layout) {
        const auto operators = layer(layout);
        const auto found = std::find_if(operators.begin(), operators.end(),
                                        [](const Operator& op) { return op.stream == Stream::context; });
        return std::get<costdb::Collective>(found->query);
    };
    Layout inside{.tp = 4, .cp = 2};
    inside.network = {400'000'000'000};
    CHECK(exchange(inside).gpus_per_node == 8);
    Layout across = inside;
    across.cp = 4;  // two of the group's GPUs in each of two nodes
    CHECK((exchange(across).gpus_per_node == 2 && exchange(across).gpus == 4));
    CHECK(exchange(across).network.bytes_per_second == 100'000'000'000);
    const auto send = [](Layout layout) {
        layout.context = ContextParallel::ring;
        return queries<costdb::PointToPoint>(layer(layout)).front();
    };
    CHECK(send(inside).gpus_per_node == 2);
    CHECK(send(across).gpus_per_node == 1);
}

TEST_CASE("a step with context parallelism builds: parts travel, weights are whole") {
    testing::SmallWorkload setup;
    const auto one = require_step(build_step(setup.input(setup.cut("megatron"))));
    for (const auto context : {ContextParallel::all_to_all, ContextParallel::ring}) {
        setup.layout.cp = 2;
        setup.layout.context = context;
        setup.cluster.gpus = 8;
        const auto two = require_step(build_step(setup.input(setup.cut("megatron"))));
        REQUIRE(two.transfers.size() == one.transfers.size());
        for (std::size_t i = 0; i < two.transfers.size(); ++i) {
            CHECK(two.transfers[i].rows == one.transfers[i].rows);
            CHECK(2 * two.transfers[i].message == one.transfers[i].message);
        }
        CHECK(two.memory[0].weights == one.memory[0].weights);
        CHECK(two.model_flops == one.model_flops);
    }
}

TEST_CASE("all-to-alls keep the attention's output twice, a ring once") {
    testing::SmallWorkload setup;
    const auto held = [&](std::int64_t cp, ContextParallel context) {
        setup.layout = {.tp = 2, .pp = 2, .cp = cp, .context = context};
        const auto input = setup.input(setup.cut("megatron"));
        // The last microbatches: one of 1024 + 2 * 64 positions, an even number.
        const auto step = require_step(build_step(input));
        for (const Pair& pair : step.problem.pairs) {
            const Task& task = step.problem.tasks[index(pair.forward)];
            if (task.microbatch == 1 && task.rank == RankId{1}) return pair.modes.front().held;
        }
        return Bytes{};
    };
    const Bytes one = held(1, ContextParallel::ring), in_ring = held(2, ContextParallel::ring);
    CHECK(2 * in_ring == one);
    const auto partition = setup.cut("megatron");
    std::int64_t layers = 0;
    for (const StageLayers& stage : partition.chains[0].stages)
        if (stage.rank == RankId{1})
            for (const LayerRange& part : stage.parts) layers += part.module == 1 ? part.count : 0;
    REQUIRE(layers > 0);
    CHECK(held(2, ContextParallel::all_to_all) - in_ring == Bytes{layers * 2 * 512 * heads * dim / 2});
}
