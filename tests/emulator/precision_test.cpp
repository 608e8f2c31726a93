// Formats of products by module and layer: what is cast, priced, held and refused.
#include "emulator/pricing/stage_memory.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/operators.hpp"
#include "pipeweaver/emulator/product_format.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

using namespace pipeweaver;
using namespace pipeweaver::emulator;
using costdb::Dtype;

namespace {

constexpr std::size_t vit = 0, llm = 1;
const PassShape shape{{1024}};

Recipe with(const std::string& formats, const std::string& members = "") {
    const std::string text = R"({"format":"pipeweaver-recipe/1","name":"mine")" + members + "}";
    return with_precision(parse_recipe(JsonDocument("r.json", text)), "--precision", formats);
}

std::vector<Operator> block_in(Dtype products, PassKind pass = PassKind::forward, bool separate_amax = false) {
    const auto model = testing::small_model();
    Execution execution;
    execution.products = products;
    execution.separate_amax = separate_amax;
    return layer_operators(model.modules[llm].architecture, shape, {.tp = 1}, pass, 0, execution);
}

// Bytes of the casts of a block; 0: it has none.
std::int64_t cast_bytes(const std::vector<Operator>& operators) {
    const auto found =
        std::find_if(operators.begin(), operators.end(), [](const auto& op) { return op.name == "casts"; });
    return found == operators.end() ? 0 : std::get<costdb::Elementwise>(found->query).traffic.count;
}

Duration forward_of(const std::string& formats, const LayerRange& range) {
    auto setup = testing::small_setup({.tp = 1, .pp = 1, .dp = 1});
    setup.recipe = with(formats);
    LayerCosts costs(setup);
    return costs.layers(range, shape, PassKind::forward).time;
}

// Weights that the only rank holds, and what a pass of the language model's first layer keeps.
std::array<std::int64_t, 2> held(const std::string& formats, const std::string& members = "") {
    testing::SmallWorkload setup({.tp = 1, .pp = 1, .dp = 1});
    setup.recipe = with(formats, members);
    const auto cut = setup.cut("megatron");
    const auto input = setup.input(cut);
    const StageLayers first{RankId{0}, {{llm, 0, 1}}};
    const auto pass = pass_memory(input, first, {{}, shape}, Recompute::none, true);
    return {static_memory(input).front().weights.count, pass.held.count};
}

}  // namespace

TEST_CASE("options and recipes say formats of the job, of modules and of layers, and say them again") {
    const Recipe recipe = with("default=fp8,vit=bf16,llm:0-3=bf16,llm:6=fp8_block");
    const auto model = testing::small_model();
    CHECK(recipe.products_of(model.modules[vit], 5) == Dtype::bf16);
    CHECK(recipe.products_of(model.modules[llm], 3) == Dtype::bf16);
    CHECK(recipe.products_of(model.modules[llm], 4) == Dtype::fp8);
    CHECK(recipe.products_of(model.modules[llm], 6) == Dtype::fp8_block);
    CHECK(recipe.execution_of(model.modules[llm], 6).products == Dtype::fp8_block);
    CHECK(formats_of(recipe) == "default=fp8,vit=bf16,llm:0-3=bf16,llm:6-6=fp8_block");
    CHECK(with(formats_of(recipe)) == recipe);
    CHECK(parse_recipe(JsonDocument("again", to_json(recipe))) == recipe);
    CHECK(formats_of(with("nvfp4")) == "nvfp4");
    CHECK(formats_of(with("bf16")).empty());
    // What was said of a module's layers goes with what was said of the module.
    CHECK(formats_of(with_precision(recipe, "--precision", "llm=bf16")) == "default=fp8,llm=bf16,vit=bf16");
}

TEST_CASE("formats that cannot be are told in one line") {
    const auto model = testing::small_model();
    const auto told = [&](const std::string& formats, const char* device, const char* message) {
        CAPTURE(formats);
        CHECK_THROWS_WITH_AS(check_precision(with(formats), model, workloads::device(device)), message, Error);
    };
    told("int3", "b200", "--precision: is 'int3', must be one of bf16, fp8, fp8_block, nvfp4, fp32");
    told("vit=bf16,llm", "b200",
         "--precision: 'llm' is not MODULE=FORMAT; write it like vit=bf16,llm=fp8,llm:0-3=bf16");
    told("llm:x=fp8", "b200", "--precision: 'llm:x' names no layers; write it like llm:0-3");
    told("llm:3-1=fp8", "b200", "--precision: 'llm:3-1' names no layers; write it like llm:0-3");
    told("lm=fp8", "b200", "recipe mine: precision.lm: unknown module 'lm'; did you mean 'llm'? Known are vit, llm");
    told("llm:6-8=fp8", "b200", "recipe mine: precision.llm:6-8: module 'llm' has layers 0 to 7");
    told("llm:0-3=fp8,llm:3-4=bf16", "b200",
         "recipe mine: precision.llm:0-3: has layers of precision.llm:3-4, too; allowed is one format");
    told("llm:0-3=fp32", "b200",
         "recipe mine: precision.llm:0-3: is fp32, and the module is in bf16; fp32 is of whole modules alone");
    told("llm=nvfp4", "h100_sxm",
         "recipe mine: precision: module 'llm' in nvfp4, which h100_sxm has no products of; allowed are bf16, fp8, "
         "fp8_block");
    told("llm:0=fp8_block", "a100_sxm",
         "recipe mine: precision: module 'llm:0-0' in fp8_block, which a100_sxm has no products of; allowed is bf16");
}

TEST_CASE("inputs of products in fewer than 16 bits are cast, of others nothing is") {
    CHECK(cast_bytes(block_in(Dtype::bf16)) == 0);
    CHECK(cast_bytes(block_in(Dtype::fp32)) == 0);
    // Inputs of qkv, output and up of 2048 columns each, of down of 8192: read in 2 bytes, written with their scales.
    const std::int64_t values = 1024 * (3 * 2048 + 8192);
    CHECK(cast_bytes(block_in(Dtype::fp8)) == 3 * values);
    CHECK(cast_bytes(block_in(Dtype::fp8_block)) == 3 * values + values / 32);
    CHECK(cast_bytes(block_in(Dtype::nvfp4)) == 2 * values + values * 9 / 16);
    // Read for the scale of the tensor, too, and written both ways.
    CHECK(cast_bytes(block_in(Dtype::nvfp4, PassKind::forward, true)) == 4 * values + 2 * (values * 9 / 16));
    CHECK(cast_bytes(block_in(Dtype::fp8, PassKind::forward, true)) == 3 * values);
}

TEST_CASE("what goes over an edge is cast where values are as wide as they were nowhere else") {
    const Layout layout{.tp = 2};
    CHECK(cast_edge(2048, 100, layout, PassKind::forward, 2, 2).empty());
    CHECK(cast_edge(2048, 100, layout, PassKind::forward, 4, 4).empty());
    CHECK(cast_edge(2048, 100, layout, PassKind::weight_gradient, 4, 2).empty());
    const auto cast = cast_edge(2048, 100, layout, PassKind::forward, 4, 2);
    REQUIRE(cast.size() == 1);
    CHECK(std::get<costdb::Elementwise>(cast.front().query).traffic == Bytes{100 * 1024 * 6});
}

TEST_CASE("layers in formats of their own cost what their formats cost alone") {
    const LayerRange all{llm, 0, 8}, one{llm, 0, 1};
    const Duration bf16 = forward_of("bf16", one), fp8 = forward_of("fp8", one);
    REQUIRE(fp8 != bf16);
    CHECK(forward_of("vit=bf16,llm=bf16", all) == forward_of("bf16", all));
    CHECK(forward_of("llm:0-7=bf16", all) == forward_of("bf16", all));
    CHECK(forward_of("llm=fp8", all) == forward_of("fp8", all));
    CHECK(forward_of("llm:2-3=fp8,llm:7=fp8", all) == 5 * bf16 + 3 * fp8);
    CHECK(forward_of("llm=fp8", {vit, 0, 6}) == forward_of("bf16", {vit, 0, 6}));
}

TEST_CASE("copies of weights and kept inputs are as large as their format") {
    const auto usual = held("bf16");
    // 4 h h + 3 h F a layer, h 2048 and F 8192; two copies of a byte.
    const std::int64_t layer = 4 * 2048 * 2048 + 3 * 2048 * 8192;
    const auto copies = held("llm:0-1=fp8");
    CHECK(copies[0] - usual[0] == 2 * 2 * layer);
    // Outputs of two norms and of the activation take a byte less each, the attention's output one more.
    CHECK(copies[1] - usual[1] == -1024 * (2 * 2048 + 8192 - 2048));
    CHECK(held("llm:1-1=fp8")[1] == usual[1]);
    // In their format alone: two bytes in place of two.
    CHECK(held("llm:0-1=fp8", R"(,"state_bytes":{"narrow":"alone"})")[0] == usual[0]);
    const auto again =
        held("llm=fp8", R"(,"state_bytes":{"narrow":"cast-again"},"kept":{"narrow_inputs":"as-values"})");
    CHECK(again == usual);
}

TEST_CASE("weights that no gradient passes are held one way") {
    const auto weights_in = [](const std::string& formats) {
        testing::SmallWorkload setup({.tp = 1, .pp = 1, .dp = 1});
        setup.model.modules[vit].trainable = false;
        setup.recipe = with(formats);
        const auto cut = setup.cut("megatron");
        return static_memory(setup.input(cut)).front().weights.count;
    };
    // 12 h h a layer, h 1024.
    CHECK(weights_in("vit=fp8") - weights_in("bf16") == std::int64_t{6} * 12 * 1024 * 1024);
}
