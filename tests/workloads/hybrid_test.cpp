// Hybrids of linear and full attention: which layer is what, parameters, FLOPs and activations worked by hand.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

std::map<BlockKind, int> kinds_of(const Architecture& network) {
    std::map<BlockKind, int> kinds;
    for (std::int64_t layer = 0; layer < network.layers; ++layer) ++kinds[block_kind(network, layer)];
    return kinds;
}

Model parsed(const std::string& extra) {
    return parse_model(JsonDocument(
        "test", R"({"format": "pipeweaver-model/1", "name": "m", "modules": [{"name": "llm", "unit": "microbatch",
                "modalities": ["text"], "architecture": {"name": "n", "kind": "llm", "layers": 8, "hidden": 256,
                "ffn": 512, "heads": 4, "vocab": 1000, "gated": true)" +
                    extra + "}}]}"));
}

const std::string linear =
    R"(, "linear": {"kind": "mamba2", "key_heads": 2, "value_heads": 4, "key_dim": 16, "value_dim": 64})";

}  // namespace

TEST_CASE("a pattern says what each layer is") {
    CHECK(kinds_of(architecture("qwen3.5-27b-llm")) ==
          std::map<BlockKind, int>{{BlockKind::linear, 48}, {BlockKind::plain, 16}});
    CHECK(kinds_of(architecture("qwen3.6-35b-a3b-llm")) ==
          std::map<BlockKind, int>{{BlockKind::linear_experts, 30}, {BlockKind::experts, 10}});
    CHECK(kinds_of(architecture("nemotron-nano-9b-v2")) == std::map<BlockKind, int>{{BlockKind::linear_alone, 27},
                                                                                    {BlockKind::dense_alone, 25},
                                                                                    {BlockKind::attention_alone, 4}});
    CHECK(kinds_of(architecture("nemotron-3-nano-30b-a3b")) ==
          std::map<BlockKind, int>{
              {BlockKind::linear_alone, 23}, {BlockKind::experts_alone, 23}, {BlockKind::attention_alone, 6}});

    const auto model = parsed(linear + R"(, "layer_pattern": "M-*-")");
    const auto& network = model.modules.front().architecture;
    CHECK(block_kind(network, 4) == BlockKind::linear_alone);
    CHECK(block_kind(network, 6) == BlockKind::attention_alone);
    CHECK(parse_model(JsonDocument("again", to_json(model))) == model);
}

TEST_CASE("experts in a latent space: what a token passes, and what its GPU holds") {
    const auto network = model("nemotron-3-super-120b-a12b").modules.front().architecture;
    std::int64_t active = embedding_parameters(network) + head_parameters(network);
    for (std::int64_t layer = 0; layer < network.layers; ++layer) active += active_layer_parameters(network, layer);
    // The published weights without inactive experts and without the layer that predicts ahead: 12,770,216,960.
    CHECK(static_cast<double>(active) == doctest::Approx(12.7702e9).epsilon(0.001));
    const auto parts = layer_parameter_parts(network, 1);
    CHECK(parts.copied == 4096 * (512 + 2 * 1024));
    CHECK(parts.experts == 512LL * 2 * 1024 * 2688);
    CHECK(parts.split == 2 * 4096 * 5376);
}

TEST_CASE("attention beside linear attention keeps what both keep, and reads one norm") {
    const auto beside = parsed(linear + R"(, "layer_pattern": "P")").modules.front().architecture;
    const auto only_linear = parsed(linear + R"(, "layer_pattern": "L")").modules.front().architecture;
    auto only_full = beside;
    only_full.linear.reset();
    only_full.layer_pattern.clear();
    const std::int64_t m = 128, queries = 4 * 64, values = 4 * 64;
    CHECK(block_parts(beside, 0).norms() == 2);
    CHECK(attention_outputs(beside, 0, m, 2) == Bytes{2 * m * (queries + values) / 2});
    // Norms and feed-forward, of 4 x 2 x hidden and 6 x ffn bytes, are there once.
    const Bytes once{m * (8 * 256 + 6 * 512)};
    CHECK(layer_activations(beside, 0, m, 0, 1) ==
          layer_activations(only_linear, 0, m, 0, 1) + layer_activations(only_full, 0, m, 0, 1) - once);
    CHECK(layer_flops(beside, 0, 128, 8192) ==
          layer_flops(only_linear, 0, 128, 8192) + layer_flops(only_full, 0, 128, 8192) - 2. * 128 * 3 * 256 * 512);
}

TEST_CASE("a pattern that says something else than the network is refused") {
    CHECK_THROWS_WITH_AS(parsed(R"(, "layer_pattern": "LLLF")"), doctest::Contains("needs 'linear'"), Error);
    CHECK_THROWS_WITH_AS(parsed(linear), doctest::Contains("layer_pattern"), Error);
    CHECK_THROWS_WITH_AS(parsed(linear + R"(, "layer_pattern": "FF")"), doctest::Contains("which 'linear' is for"),
                         Error);
    CHECK_THROWS_WITH_AS(parsed(linear + R"(, "layer_pattern": "M-*")"), doctest::Contains("no multiple"), Error);
    CHECK_THROWS_WITH_AS(parsed(linear + R"(, "layer_pattern": "MX")"), doctest::Contains("'X'"), Error);
    CHECK_THROWS_WITH_AS(parsed(linear + R"(, "layer_pattern": "ME")"), doctest::Contains("needs 'moe'"), Error);
    CHECK_THROWS_WITH_AS(
        parsed(linear +
               R"(, "layer_pattern": "ME", "moe": {"moe_layers": 8, "experts": 4, "top_k": 1, "expert_ffn": 64})"),
        doctest::Contains("has 4 layers of experts, 'moe' has 8"), Error);
}

TEST_CASE("layers of Nemotron-H 8B have the parameters of its checkpoint") {
    const auto& nemotron = architecture("nemotron-h-8b");
    // The input projection of a Mamba layer is 18560 x 4096: gate and values 2 x 8192, B and C 2 x 8 x 128, 128 heads.
    CHECK(nemotron.linear->columns() == 18'560);
    CHECK(layer_parameters(nemotron, 0) == 18'560 * 4096 + 8192 * 4096);
    CHECK(layer_parameters(nemotron, 1) == 2 * 4096 * 21'504);
    CHECK(layer_parameters(nemotron, 7) == 4096 * (4096 + 2 * 1024) + 4096 * 4096);
    CHECK(all_parameters(nemotron) == 8'100'852'736);  // what its safetensors hold
}

TEST_CASE("a layer of Qwen3.6 35B-A3B has the parameters and FLOPs of its configuration") {
    const auto& qwen = architecture("qwen3.6-35b-a3b-llm");
    constexpr std::int64_t h = 2048;
    const std::int64_t experts = h * 256 + 257 * 3 * h * 512;
    // queries and keys 2048 each, values and gate 4096 each, 2 x 32 for decay and rate; output 4096 x h.
    const std::int64_t linear_attention = h * (2 * 2048 + 2 * 4096 + 64) + 4096 * h;
    const std::int64_t attention = h * 3 * 4096 + h * 2 * 512;
    CHECK(layer_parameters(qwen, 0) == linear_attention + experts);
    CHECK(layer_parameters(qwen, 3) == attention + experts);
    const auto parts = layer_parameter_parts(qwen, 0);
    CHECK(parts.split == linear_attention + 3 * h * 512);
    CHECK(parts.copied == h * 256);

    // Four products with the state of 128 x 128 of each of 32 heads, a convolution of 4 positions over 8192 columns.
    const double rule = 1000. * (8 * 32 * 128 * 128 + 2 * 4 * 8192);
    CHECK(linear_rule_flops(*qwen.linear, 1000) == rule);
    CHECK(layer_flops(qwen, 0, 1000, 1e9) == rule + 2. * 1000 * static_cast<double>(active_layer_parameters(qwen, 0)));
    CHECK(layer_flops(qwen, 3, 0, 10) == 4. * 10 * 4096);
    CHECK(layer_flops(architecture("nemotron-h-8b"), 1, 0, 10) == 0);
}

TEST_CASE("FLOPs of a step are those that Megatron-LM counts") {
    // num_floating_point_operations() of its training.py: a hybrid's layers, forward, 8192 tokens of one sequence.
    const auto& nemotron = architecture("nemotron-h-8b");
    constexpr double s = 8192, h = 4096;
    const double mlp = 4 * s * h * 21'504;
    const double attention = 4 * s * h * (h + h * 8 / 32 + s / 2);
    const double mamba = 2 * s * h * (2 * 8192 + 2 * 8 * 128 + 128) + 7 * s * 8192 * 128 + 2 * s * 8192 * h;
    double sum = 0;
    for (std::int64_t layer = 0; layer < nemotron.layers; ++layer) sum += layer_flops(nemotron, layer, s, s * s / 2);
    CHECK(sum == doctest::Approx(24 * mamba + 24 * mlp + 4 * attention).epsilon(0.001));
}

TEST_CASE("a layer of linear attention keeps what its kernels save") {
    const auto& qwen = architecture("qwen3.5-27b-llm");
    constexpr std::int64_t m = 1000, h = 5120, ffn = 17'408, keys = 2048, values = 6144;
    const std::int64_t convolved = 2 * keys + values;
    const std::int64_t mixer = 4 * convolved + 4 * 48 * 128 + 6 * values + 2 * (64 + 6) * 48;
    CHECK(layer_activations(qwen, 0, m, 0, 1) == Bytes{m * (8 * h + mixer + 6 * ffn)});
    CHECK(layer_activations(qwen, 0, m, 0, 2) == Bytes{m * (8 * h + mixer + 6 * ffn) / 2});
    // Full attention beside it: queries, keys and values, norms of queries and keys, gate and gated output.
    CHECK(layer_activations(qwen, 3, m, 0, 1) ==
          Bytes{m * (8 * h + 2 * (6144 + 2 * 1024) + 6 * 6144 + 2 * (6144 + 1024) + 6 * ffn)});
    CHECK(attention_outputs(qwen, 0, m, 2) == Bytes{m * values});
    CHECK(recomputable_activations(qwen, 0, m, 1) == Bytes{m * (4 * h + 2 * ffn)});
    const auto needs = weight_gradient_needs(qwen, 0, m, 0, 1);
    CHECK(needs.inputs == Bytes{m * (2 * h + 2 * values + 2 * h + 2 * ffn)});
    CHECK(needs.gradients == Bytes{m * (2 * (convolved + values + 96) + 4 * ffn + 4 * h)});
}

TEST_CASE("every second product gives keys, the input of the second norm, and half of a gated up projection") {
    constexpr std::int64_t m = 1000;
    const auto& llama = architecture("llama3-8b");
    CHECK(second_product_activations(llama, 0, m, 1) == Bytes{2 * m * (1024 + 4096 + 14'336)});
    // Of tensor parallel GPUs what a collective gives is kept, and with it the input of the second norm.
    CHECK(second_product_activations(llama, 0, m, 2) == Bytes{m * (1024 + 14'336)});
    // Normed queries and keys are made again of what is kept or made again.
    const auto& qwen = architecture("qwen3-8b");
    CHECK(second_product_activations(qwen, 0, m, 1) == Bytes{2 * m * (1024 + 4096 + 1024 + 4096 + 12'288)});
    // Of experts all is kept, and of a layer of attention alone there is no second norm.
    const auto& experts = architecture("qwen3-30b-a3b");
    CHECK(second_product_activations(experts, 0, m, 1) == Bytes{2 * m * (512 + 4096 + 512 + 2048)});
    const auto& hybrid = architecture("nemotron-3-nano-30b-a3b");
    CHECK(second_product_activations(hybrid, 0, m, 1) == Bytes{});
    CHECK(second_product_activations(hybrid, 5, m, 1) == Bytes{2 * m * 256});
    CHECK(second_product_activations(architecture("wan2.1-t2v-14b"), 0, m, 1) == Bytes{});
    CHECK(second_product_activations(architecture("deepseek-v3"), 0, m, 1) == Bytes{});
}

TEST_CASE("layers of one part have one norm and nothing of the others") {
    const auto& nemotron = architecture("nemotron-nano-9b-v2");
    constexpr std::int64_t m = 128, h = 4480;
    CHECK(layer_activations(nemotron, 1, m, 0, 1) == Bytes{m * (4 * h + 4 * 15'680)});
    CHECK(layer_activations(nemotron, 0, m, 0, 1) ==
          Bytes{m * (4 * h + 2 * (2 * 10'240 + 2 * 1024 + 128) + 4 * 10'240)});
    CHECK(attention_outputs(nemotron, 1, m, 1) == Bytes{});
    CHECK(recomputable_activations(nemotron, 0, m, 1) == Bytes{m * 2 * h});
    CHECK(layer_backward_workspace(nemotron, 0, m, 1) == Bytes{2 * m * 22'656});
    CHECK(weight_gradient_needs(nemotron, 1, m, 0, 1).inputs == Bytes{m * (2 * h + 2 * 15'680)});
}
