#include "pipeweaver/workloads/counts.hpp"

#include "pipeweaver/base/json.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/shared.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

using namespace pipeweaver;
using namespace pipeweaver::workloads;

namespace {

double relative(std::int64_t value, std::int64_t reference) {
    return std::abs(static_cast<double>(value) / static_cast<double>(reference) - 1);
}

}  // namespace

TEST_CASE("matrix parameters of every network in the catalogue equal those computed by its source") {
    int compared = 0;
    for (const auto& network : architectures()) {
        CAPTURE(network.name);
        if (!network.params_computed) continue;
        CHECK(matrix_parameters(network) == *network.params_computed);
        ++compared;
    }
    CHECK(compared == 102);
}

TEST_CASE("what a token passes of a mixture of experts equals the published computation") {
    int compared = 0;
    for (const auto& network : architectures()) {
        if (!network.active_params_computed) continue;
        CAPTURE(network.name);
        std::int64_t active = network.vocab * network.hidden;  // the output head
        for (std::int64_t layer = 0; layer < network.layers; ++layer) active += active_layer_parameters(network, layer);
        CHECK(active == *network.active_params_computed);
        ++compared;
    }
    CHECK(compared == 25);
}

TEST_CASE("all parameters are within 1 % of the published ones, or the entry says why not") {
    for (const auto& network : architectures()) {
        if (!network.params_published) continue;
        CAPTURE(network.name);
        CAPTURE(all_parameters(network));
        CAPTURE(*network.params_published);
        const bool within = relative(all_parameters(network), *network.params_published) <= 0.01;
        CHECK(within == network.published_differs.empty());
    }
}

TEST_CASE("the embedded catalogue holds every entry of the collected facts, with the same parameters") {
    const auto shared = testing::shared_folder();
    if (!shared) {
        testing::left_out("the collected facts about models, which are not on this machine");
        return;
    }
    const auto facts = JsonDocument::read(*shared / "data/models.json");
    const auto models = model_names();
    for (const Json& fact : facts.root().elements()) {
        const std::string name = fact.at("name").text();
        CAPTURE(name);
        const auto named = [&](const auto& entry) { return entry.name == name; };
        if (std::any_of(refused().begin(), refused().end(), named)) continue;
        if (fact.at("kind").text() == "lmm") {
            CHECK(std::find(models.begin(), models.end(), name) != models.end());
            continue;
        }
        const auto computed = static_cast<std::int64_t>(fact.at("params_computed").number(1, 1e15));
        CHECK(matrix_parameters(architecture(name)) == computed);
    }
}

TEST_CASE("a layer of Llama 3 8B has the parameters and FLOPs of the worked example") {
    const auto& llama = architecture("llama3-8b");

    // q and output 2 x 4096 x 4096, k and v 2 x 4096 x 1024, feed-forward 3 x 4096 x 14336
    CHECK(layer_parameters(llama, 0) == 33'554'432 + 8'388'608 + 176'160'768);
    CHECK(active_layer_parameters(llama, 31) == layer_parameters(llama, 0));
    CHECK(embedding_parameters(llama) == 128'256LL * 4096);
    CHECK(head_parameters(llama) == 128'256LL * 4096);

    const std::array<std::int64_t, 1> one{8192};
    const double pairs = attention_pairs(llama, one);
    CHECK(pairs == 33'554'432);
    CHECK(layer_flops(llama, 0, 8192, pairs) == 2.0 * 8192 * 218'103'808 + 4.0 * 4096 * 33'554'432);
    CHECK(head_flops(llama, 10) == 2.0 * 10 * 128'256 * 4096);
}

TEST_CASE("attention does not cross the samples of a microbatch") {
    const auto& llama = architecture("llama3-8b");
    const auto& vit = architecture("vit-22b");
    const std::array<std::int64_t, 3> lengths{10, 20, 30};

    CHECK(attention_pairs(llama, lengths) == (100 + 400 + 900) / 2);
    CHECK(attention_pairs(vit, lengths) == 100 + 400 + 900);
}

TEST_CASE("windowed layers attend inside their window, the others everywhere") {
    const auto& vit = architecture("qwen2.5-vl-vit");
    const std::array<std::int64_t, 2> lengths{1024, 32};

    CHECK(attention_pairs(vit, 0, lengths) == 1024 * 64 + 32 * 32);
    CHECK(attention_pairs(vit, 7, lengths) == 1024 * 1024 + 32 * 32);
}

TEST_CASE("DeepSeek-V3 has three dense layers in front of its experts, and latent attention") {
    const auto& v3 = architecture("deepseek-v3");
    const std::int64_t attention =
        7168LL * 1536 + 1536LL * 128 * 192 + 7168LL * 576 + 512LL * 128 * 256 + 128LL * 128 * 7168;
    const std::int64_t expert = 3LL * 7168 * 2048;

    CHECK(!is_moe_layer(v3, 2));
    CHECK(is_moe_layer(v3, 3));
    CHECK(layer_parameters(v3, 0) == attention + 3LL * 7168 * 18432);
    CHECK(layer_parameters(v3, 60) == attention + 7168 * 256 + 257 * expert);
    CHECK(active_layer_parameters(v3, 60) == attention + 7168 * 256 + 9 * expert);
    // Keys of 192 and values of 128: 2 x 128 heads x (192 + 128) for each pair.
    CHECK(layer_flops(v3, 0, 0, 1) == 2.0 * 128 * 320);
}

TEST_CASE("Llama 4 Maverick has experts in every second layer, Step-3 in layers 4 to 59") {
    const auto& maverick = architecture("llama4-maverick-400b");
    const auto& step3 = architecture("step3-316b-llm");
    for (std::int64_t layer = 0; layer < 48; ++layer) CHECK(is_moe_layer(maverick, layer) == (layer % 2 == 1));
    for (std::int64_t layer = 0; layer < 61; ++layer) CHECK(is_moe_layer(step3, layer) == (layer >= 4 && layer <= 59));
}

TEST_CASE("Llama 3.2 vision has its cross attention at layers 3, 8, 13, ...") {
    const auto& llama = architecture("llama-3.2-11b-vision-llm");
    CHECK(llama.layers == 40);
    for (std::int64_t layer = 0; layer < 40; ++layer) CHECK(is_cross_layer(llama, layer) == (layer % 5 == 3));
    // Such a layer takes queries from the tokens, keys and values from the image alone.
    const double query_output_ffn = 2.0 * 4096 * 4096 + 3.0 * 4096 * 14336;
    CHECK(layer_flops(llama, 3, 1, 100) == 2 * query_output_ffn);
    CHECK(layer_flops(llama, 3, 0, 0, {.tokens = 1, .pairs = 1}) == 2.0 * 2 * 4096 * 1024 + 4.0 * 4096);
}

TEST_CASE("a diffusion transformer reads its context through keys and values of its own") {
    const auto& dit = architecture("dip-dit-5b");
    const double h = 3584, f = 10240;

    CHECK(layer_parameters(dit, 0) == 8 * 3584 * 3584 + 2 * 3584 * 10240);
    // 10 positions, 100 pairs; a context of 4 tokens, 40 pairs
    CHECK(layer_flops(dit, 0, 10, 100, {.tokens = 4, .pairs = 40}) ==
          2 * 10 * (6 * h * h + 2 * h * f) + 4 * h * 100 + 2 * 4 * (2 * h * h) + 4 * h * 40);
}

TEST_CASE("a position of an MMDiT passes one of the two streams, and no modulation") {
    const auto& flux = architecture("flux.1-dev");
    const std::int64_t h = 3072, block = 4 * h * h + 2 * h * 12288;

    CHECK(flux.layers == 57);
    CHECK(layer_parameters(flux, 0) == 2 * block + 12 * h * h);
    CHECK(layer_parameters(flux, 56) == block + 3 * h * h);
    CHECK(active_layer_parameters(flux, 0) == block);
    CHECK(active_layer_parameters(flux, 56) == block);
}

TEST_CASE("a projector has one linear layer or two") {
    const ModelEdge one{.projector_in = 1792, .projector_out = 5120};
    const ModelEdge two{.projector_in = 5120, .projector_out = 3584, .projector_hidden = 5120};
    CHECK(projector_parameters(one) == 1792 * 5120);
    CHECK(projector_parameters(two) == 5120 * 5120 + 5120 * 3584);
    CHECK(projector_parameters({}) == 0);
}

TEST_CASE("multi-token prediction has a projection and the head once more") {
    const Architecture one = architecture("llama3-8b");
    Architecture two = one;
    two.predicted_layers = 1;
    CHECK(matrix_parameters(two) - matrix_parameters(one) == 2LL * 4096 * 4096);
    CHECK(head_flops(two, 10) == 2 * head_flops(one, 10) + 2.0 * 10 * 2 * 4096 * 4096);
    CHECK(prediction_parameters(one) == 0);
}
