#include "pipeweaver/emulator/recipe.hpp"

#include "emulator/pricing/price.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/emulator/layer_times.hpp"
#include "pipeweaver/emulator/operators.hpp"
#include "tests/support/small_workload.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace pipeweaver;
using namespace pipeweaver::emulator;

namespace {

Recipe parsed(const std::string& members) {
    return parse_recipe(JsonDocument("r.json", R"({"format":"pipeweaver-recipe/1","name":"mine")" + members + "}"));
}

std::vector<Operator> layer(PassKind pass, const Execution& execution, std::int64_t tp = 4) {
    const auto network = testing::small_network(workloads::ModuleKind::language_model, 2, 2048);
    return layer_operators(network, {{4096}}, {.tp = tp}, pass, 0, execution);
}

std::size_t place_of(const std::vector<Operator>& list, std::string_view name, costdb::Pass pass) {
    const auto found = std::find_if(list.begin(), list.end(), [&](const Operator& op) {
        const auto* gemm = std::get_if<costdb::Gemm>(&op.query);
        return op.name == name && gemm != nullptr && gemm->pass == pass;
    });
    REQUIRE(found != list.end());
    return static_cast<std::size_t>(found - list.begin());
}

// Time of a list under the embedded costs, and what its operators take one after the other.
struct Times {
    Duration time, sum;
    explicit Times(const std::vector<Operator>& list) {
        const auto cost = price(list, *testing::small_costs(), {});
        time = cost.time;
        sum = cost.total();
    }
};

constexpr Execution in_launch_order{}, unhidden{.tensor_overlap = TensorOverlap::none};

}  // namespace

TEST_CASE("shipped recipes are found by name, and written as they are read") {
    REQUIRE(recipes().size() > 4);
    CHECK(find_recipe("megatron-core") == recipes().front());
    Recipe standard = recipes().front();
    standard.about = standard.source = "";
    standard.runs.clear();
    CHECK(standard == Recipe{});
    for (const Recipe& recipe : recipes()) {
        CHECK(!recipe.about.empty());
        CHECK(!recipe.source.empty());
        CHECK(parse_recipe(JsonDocument("again", to_json(recipe))) == recipe);
    }
    CHECK_THROWS_WITH_AS(static_cast<void>(find_recipe("megatron-cor")),
                         "unknown recipe 'megatron-cor'; did you mean 'megatron-core'?", Error);
}

TEST_CASE("tuned stacks take products on B200 as GB200's runs have them, others as its own runs do") {
    const Recipe tuned = find_recipe("megatron-core-overlap");
    const auto in_situ = in_situ_factors("b200");
    CHECK(in_stack(in_situ, tuned).factors.products == in_situ_factors("gb200").factors.products);
    CHECK(in_stack(in_situ, tuned).factors.attention == in_situ.factors.attention);
    for (const char* name : {"megatron-core", "torch-fsdp2"})
        CHECK(in_stack(in_situ, find_recipe(name)).factors == in_situ.factors);
    for (const char* device : {"h100_sxm", "gb200", "b300"})
        CHECK(in_stack(in_situ_factors(device), tuned).factors == in_situ_factors(device).factors);
    const auto eight_bit = in_situ_factors("b200", Precision::eight_bit);
    CHECK(in_stack(eight_bit, tuned).factors == eight_bit.factors);
}

TEST_CASE("a recipe that extends another says only what differs") {
    const auto mine = parsed(R"(,"extends":"megatron-2022","precision":{"default":"bf16","llm":"fp8"})");
    CHECK(mine.name == "mine");
    CHECK(mine.zero == 0);
    CHECK(!mine.execution.fused_attention);
    CHECK(mine.execution.norms_again);
    CHECK(!parsed(R"(,"split_backward":{"norms_again":false})").execution.norms_again);
    CHECK(parsed(R"(,"split_backward":{"slowdown":1.2})").split_slowdown == 1.2);
    CHECK_THROWS_AS(static_cast<void>(parsed(R"(,"split_backward":{"slowdown":0.9})")), Error);
    CHECK(parsed(R"(,"extends":"megatron-core-overlap","data_parallel":{"zero":2,"bucket_bytes":0})").zero == 2);
    CHECK(mine.precision == std::map<std::string, costdb::Dtype>{{"llm", costdb::Dtype::fp8}});
}

TEST_CASE("a bad recipe is told in one line, with its key and what is allowed") {
    const auto told = [](const std::string& members, const std::string& words) {
        CHECK_THROWS_WITH_AS(static_cast<void>(parsed(members)), ("r.json: " + words).c_str(), Error);
    };
    told(R"(,"atention":"fused")", "unknown key 'atention'; did you mean 'attention'?");
    told(R"(,"tensor_parallel":{"overlap":"launch order"})",
         "tensor_parallel.overlap: is 'launch order', must be one of none, launch-order, inside-gemms (did you mean "
         "'launch-order'?)");
    told(R"(,"data_parallel":{"zero":2,"bucket_bytes":1000})",
         "data_parallel.bucket_bytes: goes with zero 0 and 1; with 2 gradients are reduced in every backward");
    told(R"(,"tensor_parallel":{"overlap":"inside-gemms","sequence_parallel":false})",
         "tensor_parallel.overlap: is 'inside-gemms', which goes with sequence_parallel true alone");
    told(
        R"(,"extends":"megatron-core-overlap","data_parallel":{"zero":2})",
        "data_parallel.zero: is 2, and the recipe that is extended reduces gradients in buckets, which goes with 0 and "
        "1; or say bucket_bytes 0");
    told(R"(,"extends":"megatron-core-overlap","tensor_parallel":{"sequence_parallel":false})",
         "tensor_parallel.sequence_parallel: is false, and the recipe that is extended has overlap 'inside-gemms', "
         "which "
         "goes with true alone");
    told(R"(,"host":{"action":5})", "host: unknown key 'action'; did you mean 'action_ns'?");
    told(R"(,"host":{"action_ns":-1})", "host.action_ns: is -1, must be a whole number from 0 to 1000000000");
    told(R"(,"split_backward":{"norms_agian":true})",
         "split_backward: unknown key 'norms_agian'; did you mean 'norms_again'?");
    told(R"(,"extends":"torch-fsdp")", "extends: unknown recipe 'torch-fsdp'; did you mean 'torch-fsdp2'?");
}

TEST_CASE("a recipe's modules must be the model's, and its precision the device's") {
    const auto model = testing::small_model();
    CHECK_THROWS_WITH_AS(check(parsed(R"(,"precision":{"lm":"fp8"})"), model, workloads::device("h100_sxm")),
                         "recipe mine: precision.lm: unknown module 'lm'; did you mean 'llm'? Known are vit, llm",
                         Error);
    const auto eight_bit = parsed(R"(,"precision":{"llm":"fp8"})");
    check(eight_bit, model, workloads::device("h100_sxm"));
    CHECK_THROWS_WITH_AS(
        check(eight_bit, model, workloads::device("a100_sxm")),
        "recipe mine: precision: module 'llm' in fp8, which a100_sxm has no products of; allowed is bf16", Error);
}

TEST_CASE("by launch order a column-parallel backward gathers beside I's product and scatters beside W's") {
    const auto list = layer(PassKind::backward, in_launch_order);
    const auto input = static_cast<std::uint32_t>(place_of(list, "qkv", costdb::Pass::backward_input));
    const auto weight = static_cast<std::uint32_t>(place_of(list, "qkv", costdb::Pass::backward_weight));
    REQUIRE(weight == input + 3);
    const Operator &gather = list[input + 1], &scatter = list[input + 2];
    CHECK(gather.name == "gather for weights");
    CHECK(scatter.name == "scatter");
    CHECK(list[input].after == gather.after);  // both begin with what is in front of them
    CHECK(list[weight].after == std::vector{input, input + 1});
    CHECK(scatter.after == std::vector{input});
    CHECK(list[weight + 1].after == std::vector{input + 2, weight});  // who comes next waits for both
}

TEST_CASE("each hidden collective costs what it is longer than the product beside it") {
    const auto list = layer(PassKind::backward, in_launch_order);
    const auto& costs = *testing::small_costs();
    Duration expected{};
    for (const Operator& op : list) expected += ask(costs, op).duration;
    for (const auto* name : {"qkv", "up"}) {
        const std::size_t input = place_of(list, name, costdb::Pass::backward_input);
        const auto time = [&](std::size_t i) { return ask(costs, list[i]).duration; };
        expected -= std::min(time(input), time(input + 1)) + std::min(time(input + 2), time(input + 3));
    }
    CHECK(Times(list).time == expected);
    CHECK(Times(list).time < Times(layer(PassKind::backward, unhidden)).time);
}

TEST_CASE("forwards, and a single tensor parallel GPU, have nothing to hide") {
    CHECK(Times(layer(PassKind::forward, in_launch_order)).time == Times(layer(PassKind::forward, unhidden)).time);
    const Times alone(layer(PassKind::backward, in_launch_order, 1));
    CHECK(alone.time == alone.sum);
}

TEST_CASE("of a split backward the scatters of I are exposed, and of W the first gather") {
    const Times input(layer(PassKind::input_gradient, in_launch_order));
    CHECK(input.time == input.sum);
    const Times weight(layer(PassKind::weight_gradient, in_launch_order));
    CHECK(weight.time < weight.sum);
    const Times whole(layer(PassKind::backward, in_launch_order));
    CHECK(input.time + weight.time > whole.time);
}

TEST_CASE("without sequence parallelism sums are whole on every GPU: one all-reduce where there were two exchanges") {
    const Execution whole{.sequence_parallel = false, .tensor_overlap = TensorOverlap::none};
    for (const PassKind pass : {PassKind::forward, PassKind::backward}) {
        int all_reduces = 0;
        for (const Operator& op : layer(pass, whole))
            if (const auto* query = std::get_if<costdb::Collective>(&op.query)) {
                CHECK(query->kind == costdb::CollectiveKind::all_reduce);
                ++all_reduces;
            }
        CHECK(all_reduces == 2);
    }
}

TEST_CASE("layer times are those of a layer alone, the mean over microbatches") {
    testing::SmallWorkload setup({.tp = 2, .pp = 2, .dp = 1});
    const std::vector<std::vector<PassShape>> shapes{{{{256, 256}}, {{1024}}}, {{}, {{512}}}};
    const auto layers = layer_times(setup, shapes);
    REQUIRE(layers.size() == static_cast<std::size_t>(setup.model.modules[0].architecture.layers +
                                                      setup.model.modules[1].architecture.layers));
    LayerCosts costs(setup);
    const auto& forward = costs.layer(0, 0, shapes[0][0], PassKind::forward);
    CHECK(layers.front().module == setup.model.modules[0].name);
    CHECK(layers.front().forward == forward.time / 2);
    CHECK(layers.front().exposed_traffic > Duration{0});
    CHECK(layers.front().exposed_traffic < layers.front().forward + layers.front().backward);
    CHECK(layers.front().kept > Bytes{});
}

TEST_CASE("a recipe's kernels take so much longer than the device's, by class") {
    const auto costs = testing::small_costs();
    const auto time = [&](const Recipe& recipe, std::string_view device, OperatorClass kind, Stream stream) {
        Duration sum{};
        const auto priced = price(layer(PassKind::forward, unhidden), *costs, in_situ_factors(device), recipe);
        for (std::size_t i = 0; i < priced.operators.size(); ++i)
            if (priced.operators[i].kind() == kind && priced.operators[i].stream == stream) sum += priced.duration[i];
        return static_cast<double>(sum.count());
    };
    const Recipe plain;
    const auto slow =
        parsed(R"(,"kernels":{"products":2,"attention":3,"attention_after_ampere":2,"memory_bound":4,"traffic":5})");
    const auto ratio = [&](std::string_view device, OperatorClass kind, Stream stream = Stream::compute) {
        return time(slow, device, kind, stream) / time(plain, device, kind, stream);
    };
    CHECK(ratio("h100_sxm", OperatorClass::gemm) == doctest::Approx(2).epsilon(1e-4));
    CHECK(ratio("h100_sxm", OperatorClass::attention) == doctest::Approx(6).epsilon(1e-4));
    CHECK(ratio("a100_sxm", OperatorClass::attention) == doctest::Approx(3).epsilon(1e-4));
    CHECK(ratio("h100_sxm", OperatorClass::elementwise) == doctest::Approx(4).epsilon(1e-4));
    CHECK(ratio("h100_sxm", OperatorClass::collective, Stream::tensor) == doctest::Approx(5).epsilon(1e-4));
    CHECK_THROWS_WITH_AS(static_cast<void>(parsed(R"(,"kernels":{"gemm":2})")),
                         doctest::Contains("kernels: unknown key 'gemm'"), Error);
}

TEST_CASE("attention without a causal mask may take other times than with one, after Ampere alone") {
    const auto both = parsed(R"(,"kernels":{"attention":3,"attention_after_ampere":2,"unmasked_after_ampere":1.5})");
    CHECK(parse_recipe(JsonDocument("again", to_json(both))) == both);
    const auto factor = [](const Recipe& recipe, workloads::ModuleKind kind, std::string_view device) {
        const auto list = layer_operators(testing::small_network(kind, 2, 1024), {{1024}}, {}, PassKind::forward, 0);
        const auto found = std::find_if(list.begin(), list.end(),
                                        [](const Operator& op) { return op.kind() == OperatorClass::attention; });
        REQUIRE(found != list.end());
        const auto in_situ = in_situ_factors(device);
        return in_situ_factor(*found, in_situ, recipe) / in_situ.factors.attention;
    };
    constexpr auto encoder = workloads::ModuleKind::vision_encoder, llm = workloads::ModuleKind::language_model;
    CHECK(factor(both, llm, "h100_sxm") == doctest::Approx(6));
    CHECK(factor(both, encoder, "h100_sxm") == doctest::Approx(4.5));
    CHECK(factor(both, encoder, "a100_sxm") == doctest::Approx(3));
    const auto masked = parsed(R"(,"extends":"torch-fsdp2","kernels":{"attention_after_ampere":1.5})");
    CHECK(!masked.kernels.unmasked_after_ampere);  // those were other kernels
    CHECK(factor(masked, encoder, "h100_sxm") == doctest::Approx(1.5));
}

TEST_CASE("what extends a recipe rests on no runs but its own") {
    CHECK(find_recipe("megatron-2022").runs.at("a100_sxm") > 700);
    CHECK(parsed(R"(,"extends":"megatron-2022")").runs.empty());
    CHECK(parsed(R"(,"runs":{"h100_sxm":3})").runs.at("h100_sxm") == 3);
}

TEST_CASE("a step's time is fitted where both its device in its precision and its recipe were") {
    const auto footing_on = [](std::string_view device, Precision precision, const Recipe& recipe) {
        return footing(in_situ_factors(device, precision), recipe, device);
    };
    const auto tuned = find_recipe("megatron-core-overlap");
    CHECK(footing_on("h100_sxm", Precision::eight_bit, tuned) == Footing::fitted);
    CHECK(footing_on("h100_sxm", Precision::eight_bit, parsed("")) == Footing::borrowed);
    CHECK(footing_on("gb200", Precision::sixteen_bit, tuned) == Footing::borrowed);
    CHECK(footing_on("cpu", Precision::sixteen_bit, tuned) == Footing::assumed);
    CHECK(name_of(Footing::borrowed) == "borrowed");
}

TEST_CASE("a step on a device that has neither tables nor runs is modelled, until it has tables") {
    for (const char* name : {"mi300x", "gh200", "rtx_4090"}) {
        CAPTURE(name);
        const auto alone = in_situ_factors(costdb::CostDatabase::embedded(name), name);
        CHECK(alone.footing == Footing::modelled);
        CHECK(alone.source == "the peaks of its data sheet alone, neither tables nor runs");
        CHECK(error_percent(alone, footing(alone, find_recipe("megatron-core"), name)) == doctest::Approx(50));
        // No link of another device is lent.
        CHECK(costdb::CostDatabase::embedded(name).measurements().links_of.empty());
    }
    costdb::Measurements own;
    own.device = "mi300x";
    own.gemm.push_back({.m = 4096, .n = 4096, .k = 4096, .latency_ns = 300'000});
    CHECK(in_situ_factors(costdb::CostDatabase::from(std::move(own)), "mi300x").footing == Footing::assumed);
    CHECK(in_situ_factors(costdb::CostDatabase::embedded("h800_sxm"), "h800_sxm").footing == Footing::borrowed);
    for (const char* measured : {"b200", "b300", "gb200", "gb300"}) {
        CAPTURE(measured);
        const auto costs = costdb::CostDatabase::embedded(measured);
        CHECK(in_situ_factors(costs, measured).footing == Footing::fitted);
        CHECK(costs.cost(costdb::Gemm{.m = 4096, .n = 4096, .k = 4096}).basis < costdb::Basis::extrapolated);
    }
}

TEST_CASE("a recipe says how experts' tokens are sent") {
    const auto recipe = parsed(
        R"(,"experts":{"dispatcher":"once-a-node","exposed":0.25,"imbalance":1.5,"most_nodes":4,"tensor_parallel":2})");
    const ExpertParallel asked{Dispatcher::once_a_node, 0.25, 1.5, 4, 2};
    CHECK(recipe.execution.experts == asked);
    CHECK(parse_recipe(JsonDocument("r.json", to_json(recipe))).execution.experts == asked);
    CHECK(parsed("").execution.experts == ExpertParallel{});
    CHECK_THROWS_AS(static_cast<void>(parsed(R"(,"experts":{"dispatcher":"twice"})")), Error);
    CHECK_THROWS_AS(static_cast<void>(parsed(R"(,"experts":{"imbalance":0.9})")), Error);
    CHECK_THROWS_AS(static_cast<void>(parsed(R"(,"experts":{"exposed":1.1})")), Error);
    CHECK_THROWS_AS(static_cast<void>(parsed(R"(,"experts":{"tensor_parallel":0})")), Error);
}

TEST_CASE("a layer with experts takes its recipe's time for routing") {
    CHECK(parsed(R"(,"host":{"expert_layer_ns":1500000})").expert_layer == Duration{1'500'000});
    const auto vit_alone = parsed(R"(,"host":{"layer_ns":5,"layer_ns_of":{"vit":7}})");
    CHECK(vit_alone.host_of(workloads::Module{"vit", {}, {}, {}, true}) == Duration{7});
    CHECK(vit_alone.host_of(workloads::Module{"llm", {}, {}, {}, true}) == Duration{5});
    CHECK(parse_recipe(JsonDocument("own", to_json(vit_alone))) == vit_alone);
}

TEST_CASE("a recipe says how its kernels are launched; one with times of its host launches them one by one") {
    CHECK(parsed("").launched == Launched::unknown);
    CHECK(is_open(parsed("")));
    CHECK(find_recipe("megatron-2022").launched == Launched::eager);
    CHECK(!is_open(find_recipe("megatron-2022")));
    CHECK(find_recipe("torchtitan").launched == Launched::compiled);
    CHECK(find_recipe("torchtitan").eager == "torch-fsdp2-eager");
    CHECK(find_recipe("torch-fsdp2-eager").launched == Launched::eager);
    for (const char* name : {"torch-fsdp2-eager", "accelerate-fsdp2", "halo"})
        CHECK(find_recipe(name).expert_layer == find_recipe("megatron-core-plain").expert_layer);
    CHECK(!is_open(find_recipe("maxtext")));
    CHECK(parsed(R"(,"host":{"layer_ns":5})").launched == Launched::eager);
    CHECK(!is_open(parsed(R"(,"host":{"launched":"compiled","layer_ns":5})")));
    CHECK(!is_open(parsed(R"(,"host":{"eager":""})")));
}

TEST_CASE(
    "kernel by kernel a recipe has its own host's times, else those of such runs of its stack; graphs have none") {
    const auto eager = parsed(R"(,"host":{"launched":"eager"})");
    CHECK(eager.layer == find_recipe("megatron-core-plain").layer);
    CHECK(eager.expert_layer == find_recipe("megatron-core-plain").expert_layer);
    CHECK(parsed(R"(,"extends":"megatron-2022","host":{"launched":"eager"})").layer ==
          find_recipe("megatron-2022").layer);
    const auto graphs = parsed(R"(,"extends":"megatron-core-plain","host":{"launched":"graphs"})");
    CHECK(!graphs.has_host());
    CHECK(!is_open(graphs));
    for (const Recipe& one : {eager, graphs}) CHECK(parse_recipe(JsonDocument("again", to_json(one))) == one);
    CHECK_THROWS_WITH_AS(
        static_cast<void>(parsed(R"(,"host":{"launched":"graphs","layer_ns":5})")),
        "r.json: host.launched: is 'graphs', which goes with no launch_ns, layer_ns, layer_ns_of and expert_layer_ns "
        "above 0",
        Error);
    CHECK_THROWS_WITH_AS(
        check(parsed(R"(,"host":{"eager":"maxtext"})"), testing::small_model(), workloads::device("h100_sxm")),
        doctest::Contains("recipe mine: host.eager: is 'maxtext', must be one of megatron-2022, "), Error);
    // It is no PyTorch, whose hosts are those that were measured.
    CHECK(find_recipe("maxtext").eager.empty());
    CHECK_THROWS_WITH_AS(static_cast<void>(launched_as(find_recipe("maxtext"), Launched::eager)),
                         doctest::Contains("recipe maxtext: host.eager: names no recipe: no such runs were at hand"),
                         Error);
}
