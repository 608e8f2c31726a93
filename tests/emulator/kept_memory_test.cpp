// What recipes say of memory besides the formulas of activations.
#include "emulator/pricing/kept_memory.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/reserve.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

using namespace pipeweaver;
using namespace pipeweaver::emulator;

namespace {

Recipe parsed(const std::string& members) {
    return parse_recipe(JsonDocument("r.json", R"({"format":"pipeweaver-recipe/1","name":"mine")" + members + "}"));
}

workloads::Architecture gated() {
    auto network = testing::small_network(workloads::ModuleKind::language_model, 2, 2048);
    network.gated = true;
    return network;
}

constexpr std::int64_t m = 1024, tp = 4;

Bytes besides(const std::string& members) { return kept_besides(gated(), 0, m, {.tp = tp}, parsed(members)); }

}  // namespace

TEST_CASE("a stack that is as the formulas say keeps nothing besides") {
    CHECK(besides("") == Bytes{});
    CHECK(kept_logits(gated(), m, tp, parsed("")) == workloads::head_activations(gated(), m, tp));
}

TEST_CASE("a gate in a kernel of its own keeps its activation, gathered inputs and masks are kept where they are") {
    const auto network = gated();
    const std::int64_t h = network.hidden, f = network.ffn;
    CHECK(besides(R"(,"kept":{"gate":"separate"})") == Bytes{2 * m * f / tp});
    CHECK(besides(R"(,"kept":{"column_inputs":"gathered"})") == Bytes{2 * 2 * m * h * (tp - 1) / tp});
    CHECK(besides(R"(,"kept":{"mask_bytes":1})") == Bytes{2 * m * h / tp});
    CHECK(kept_gate(network, 0, m, tp, parsed(R"(,"kept":{"gate":"separate"})")) == Bytes{2 * m * f / tp});
}

TEST_CASE("norms of a framework's own are a language model's alone, and whole where positions are") {
    const std::int64_t h = gated().hidden;
    CHECK(besides(R"(,"kept":{"norm_bytes":72})") == Bytes{72 * m * h / tp});
    CHECK(besides(R"(,"tensor_parallel":{"sequence_parallel":false},"kept":{"norm_bytes":72})") ==
          Bytes{8 * m * h * (tp - 1) / tp + 72 * m * h});
    const auto encoder = testing::small_network(workloads::ModuleKind::vision_encoder, 2, 2048);
    CHECK(kept_besides(encoder, 0, m, {.tp = tp}, parsed(R"(,"kept":{"norm_bytes":72})")) == Bytes{});
}

TEST_CASE("without sequence parallelism every GPU keeps inputs and outputs of norms whole, and gathers nothing") {
    const std::int64_t h = gated().hidden;
    const std::string whole = R"(,"tensor_parallel":{"sequence_parallel":false})";
    CHECK(besides(whole) == Bytes{8 * m * h * (tp - 1) / tp});
    CHECK(besides(whole + R"(,"kept":{"column_inputs":"gathered","mask_bytes":1})") ==
          Bytes{8 * m * h * (tp - 1) / tp + 2 * m * h});
}

TEST_CASE("a delta net whose norm and gate are two kernels keeps what is between them, in its own layers alone") {
    auto network = gated();
    network.linear = workloads::LinearAttention{.key_heads = 4, .value_heads = 8, .key_dim = 128, .value_dim = 128};
    network.layer_pattern = "LF";
    const auto separate = parsed(""), fused = parsed(R"(,"kept":{"linear_norm":"fused"})");
    CHECK(kept_besides(network, 0, m, Layout{.tp = tp}, separate) == Bytes{2 * m * 8 * 128 / tp});
    CHECK(kept_besides(network, 1, m, Layout{.tp = tp}, separate) == Bytes{});
    CHECK(kept_besides(network, 0, m, Layout{.tp = tp}, fused) == Bytes{});
    CHECK(kept_besides(gated(), 0, m, Layout{.tp = tp}, separate) == Bytes{});
    CHECK(parse_recipe(JsonDocument("r.json", to_json(fused))) == fused);
}

TEST_CASE("logits are as wide as the loss has them, and whole where they are not split") {
    const std::int64_t v = gated().vocab;
    CHECK(kept_logits(gated(), m, tp, parsed(R"(,"kept":{"logit_bytes":10})")) == Bytes{10 * m * v / tp});
    CHECK(kept_logits(gated(), m, tp, parsed(R"(,"kept":{"logits":"whole","logit_bytes":8})")) == Bytes{8 * m * v});
    CHECK(kept_logits(gated(), m, tp, find_recipe("torch-fsdp2-eager")) == Bytes{16 * m * v / tp});
    CHECK(kept_logits(gated(), m, tp, find_recipe("torch-fsdp2")) == Bytes{2 * m * v / tp});
}

TEST_CASE("what a recipe says of memory is read as it is written") {
    const auto recipe =
        parsed(R"(,"state_bytes":{"whole":2},"kept":{"gate":"separate","column_inputs":"gathered","logits":"whole",)"
               R"("logit_bytes":10,"mask_bytes":1,"norm_bytes":3})");
    CHECK(parse_recipe(JsonDocument("r.json", to_json(recipe))) == recipe);
    CHECK(recipe.state.whole == 2);
    const auto sharded = parsed(R"(,"data_parallel":{"zero":3,"gathered_bytes":7},)"
                                R"("state_bytes":{"pipelined":3,"update":4,"summed":5,"apart":6,"bare":true})");
    CHECK(parse_recipe(JsonDocument("r.json", to_json(sharded))) == sharded);
    CHECK(sharded.gathered == Bytes{7});
    CHECK(sharded.state.update == 4);
    CHECK(sharded.state.pipelined == 3);
    CHECK(sharded.state.summed == 5);
    CHECK(sharded.state.apart == 6);
    CHECK(sharded.state.bare);
    CHECK_THROWS_WITH_AS(static_cast<void>(parsed(R"(,"kept":{"gate":"none"})")), doctest::Contains("kept.gate"),
                         Error);
}

TEST_CASE("what is reserved grows with the microbatches in flight, and nvidia-smi shows more") {
    RankMemory memory;
    memory.peak = 40_GiB;
    memory.activations = 20_GiB;
    memory.in_flight = 1;
    const Bytes one = reserved(memory);
    CHECK(one == Bytes{(40_GiB).count / 20 + (40_GiB).count});
    memory.in_flight = 4;
    CHECK(reserved(memory) > one);
    CHECK(on_device(memory, 1) > reserved(memory));
    CHECK(on_device(memory, 8) > on_device(memory, 1));
    CHECK(not_counted().find("58.8 GB") != std::string::npos);
}
