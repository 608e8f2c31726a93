// Rules of frameworks: what keeps them, the layers that are built, errors. rule_table_test.cpp breaks each.
#include "pipeweaver/launch/rules.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/launch/hazards.hpp"
#include "pipeweaver/launch/said.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <set>
#include <string>
#include <vector>

using namespace pipeweaver;
using launch::Dialect;

namespace {

const std::string usual =
    "--tensor-model-parallel-size 4 --pipeline-model-parallel-size 4 --sequence-parallel --num-layers 32 --hidden-size "
    "4096 "
    "--num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 1 "
    "--global-batch-size 64 --disable-bias-linear --bf16 ";

launch::MegatronLaunch arguments(const std::string& more) {
    return launch::read_megatron(launch::read_words(Dialect::megatron_arguments, usual + more, "--megatron-args"));
}

using Ids = std::vector<std::string>;

template <class Launch>
Ids broken(const Launch& said, const char* framework = "megatron-core") {
    Ids ids;
    for (const auto& rule : launch::broken_rules(said, 64, launch::framework_called(framework)))
        ids.emplace_back(rule.id);
    return ids;
}

bool keeps_all(const std::string& more, const char* framework = "megatron-core") {
    return broken(arguments(more), framework).empty();
}

launch::TitanLaunch titan(const std::string& text) {
    auto l = launch::read_titan(
        launch::read_words(Dialect::titan_settings, "--training.disable_cuda_graphs " + text, "--torchtitan-args"));
    l.layers = 32;
    l.heads = 32;
    l.kv_heads = 8;
    return l;
}

}  // namespace

TEST_CASE("what is constructed breaks no rule") {
    CHECK(keeps_all(""));
    CHECK(keeps_all("--num-virtual-stages-per-pipeline-rank 2"));
    CHECK(keeps_all("--num-layers-per-virtual-pipeline-stage 4"));
    CHECK(keeps_all("--decoder-first-pipeline-num-layers 5 --decoder-last-pipeline-num-layers 7"));
    CHECK(keeps_all("--pipeline-model-parallel-layout Et*7|t*8|t*8|t*9L"));
    CHECK(keeps_all("--custom-pipeline-layers 5,9,9,9"));
    CHECK(keeps_all("--hybrid-layer-pattern M*|M*|M*|M-", "megatron-core:0.20.0"));
    CHECK(keeps_all("--tensor-model-parallel-size 2 --context-parallel-size 8 --cp-comm-type a2a"));
    CHECK(
        keeps_all("--num-virtual-stages-per-pipeline-rank 2 --global-batch-size 24 "
                  "--microbatch-group-size-per-virtual-pipeline-stage 6"));
    CHECK(keeps_all("--recompute-granularity selective --recompute-modules mhc", "megatron-core:0.20.0"));
    const std::string experts =
        "--num-experts 8 --moe-ffn-hidden-size 1024 --moe-token-dispatcher-type alltoall --expert-model-parallel-size "
        "2 ";
    CHECK(keeps_all(experts));
    CHECK(keeps_all(experts + "--overlap-moe-expert-parallel-comm --num-virtual-stages-per-pipeline-rank 2"));
}

TEST_CASE("all that a phase breaks is told together, and of later phases nothing") {
    CHECK(broken(arguments("--context-parallel-size 3 --recompute-activations --recompute-method uniform "
                           "--group-query-attention --num-query-groups 3")) ==
          Ids{"world-size", "sequence-by-context", "selective-method"});
    CHECK(broken(arguments("--group-query-attention --num-query-groups 3 --moe-router-topk 1 "
                           "--padded-vocab-size 32001")) == Ids{"groups-by-tp", "router-pre-softmax"});
    const auto overrides = [](const std::string& more) {
        return launch::read_megatron(launch::read_words(
            Dialect::bridge_overrides,
            "model.num_layers=8 model.hidden_size=64 model.num_attention_heads=4 model.seq_length=64 "
            "train.micro_batch_size=1 " +
                more,
            "--bridge-overrides"));
    };
    CHECK(broken(overrides("")).empty());
    CHECK(broken(overrides("model.sequence_parallel=True model.num_moe_experts=0")) ==
          Ids{"sequence-parallel", "some-experts"});
    CHECK(broken(overrides("model.sequence_parallel=True model.virtual_pipeline_model_parallel_size=2")) ==
          Ids{"groups-chunks"});
    CHECK(broken(titan("--parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule 2F2B "
                       "--parallelism.tensor_parallel_degree 3 --parallelism.expert_parallel_degree 7"),
                 "torchtitan") == Ids{"world", "expert-mesh"});
}

TEST_CASE("a size that nothing says is asked for by the name that the launch would have") {
    const auto l = launch::read_megatron(launch::read_words(Dialect::bridge_overrides, "model.num_layers=8", "x"));
    CHECK_THROWS_WITH_AS(launch::broken_rules(l, 8, launch::framework_called("megatron-core")),
                         "missing model.hidden_size: say it, or name a model with --model; model.num_attention_heads: "
                         "say it, or name a model with --model; model.seq_length: say it in the launch; "
                         "train.micro_batch_size: say it in the launch",
                         Error);
    CHECK_THROWS_WITH_AS(
        launch::framework_called("megatron-core:9"),
        "--framework: is 'megatron-core:9', must be one of megatron-core:0.16.1, megatron-core:0.17.1, "
        "megatron-core:0.18.2, megatron-core:0.19.0, megatron-core:0.20.0, megatron-bridge:0.6.0, "
        "megatron-bridge:0.5.1, megatron-bridge:0.4.2, megatron-bridge:0.3.1, torchtitan:0.3.0, "
        "llama-factory:ff6d4d12, ms-swift:3602360a, veomni:d9774494, nemo-automodel:0.5.0, "
        "hugging-face-trainer:00349ae8, megatron-mimo:067f987d",
        Error);
}

TEST_CASE("layers that are built, stage by stage") {
    const auto built = [](const std::string& more) {
        return launch::built_layers(launch::settled(arguments(more))).layers;
    };
    using Layers = std::vector<std::int64_t>;
    CHECK(built("") == Layers{8, 8, 8, 8});
    CHECK(built("--num-virtual-stages-per-pipeline-rank 2") == Layers{4, 4, 4, 4, 4, 4, 4, 4});
    CHECK(built("--decoder-first-pipeline-num-layers 4 --decoder-last-pipeline-num-layers 8 "
                "--num-virtual-stages-per-pipeline-rank 2") == Layers{2, 5, 5, 4, 2, 5, 5, 4});
    CHECK(built("--num-layers 30 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split") ==
          Layers{7, 8, 8, 7});
    CHECK(built("--pipeline-model-parallel-layout E|t*16|t*16|L") == Layers{0, 16, 16, 0});
}

TEST_CASE("torchtitan: what is constructed breaks no rule, and its stages") {
    CHECK(broken(titan(""), "torchtitan").empty());
    CHECK(broken(titan("--parallelism.pipeline_parallel_degree 2"), "torchtitan").empty());
    const auto layers = [](const std::string& text) { return launch::built_layers(titan(text)).layers; };
    using Layers = std::vector<std::int64_t>;
    CHECK(layers("--parallelism.pipeline_parallel_degree 4") == Layers{8, 9, 8, 7});
    CHECK(layers("--parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule Interleaved1F1B") ==
          Layers{8, 9, 8, 7});
    CHECK(layers("--parallelism.pipeline_parallel_degree 2 --parallelism.module_fqns_per_model_part "
                 "tok_embeddings,layers.0 layers.1,norm") == Layers{1, 1});
}

TEST_CASE("chunks of lengths that vary are a hazard until the launch says variable_seq_lengths") {
    launch::MegatronLaunch said = arguments("--num-virtual-stages-per-pipeline-rank 2 --global-batch-size 32");
    const launch::HazardAsked asked{.gpus = 64, .device = "b200", .varied = true};
    CHECK(launch::hazards_of(said, asked).size() == 1);
    said.variable_lengths = true;
    CHECK(launch::hazards_of(said, asked).empty());
}

TEST_CASE("every rule has an identifier, a sentence and a source, and no two of a version are called the same") {
    std::set<std::string> seen;
    for (const auto& rule : launch::rule_texts()) {
        CHECK(!rule.says.empty());
        CHECK(!rule.source.empty());
        CHECK(seen.insert(fmt::format("{} {} {}", rule.framework, rule.versions, rule.id)).second);
    }
    for (const auto& hazard : launch::hazard_texts()) {
        CHECK(!hazard.source.empty());
        CHECK(seen.insert(fmt::format("{} {}", hazard.framework, hazard.id)).second);
    }
}

TEST_CASE("Megatron-Bridge has the rules of the Megatron Core it comes with, and defaults of its own by version") {
    const std::string experts =
        "model.num_layers=8 model.hidden_size=64 model.num_attention_heads=4 model.seq_length=64 "
        "train.micro_batch_size=1 model.add_bias_linear=False model.num_moe_experts=8 "
        "model.moe_token_dispatcher_type=alltoall model.expert_model_parallel_size=4 ";
    const auto read = [&](const std::string& more, const char* framework) {
        return launch::read_megatron(launch::read_words(Dialect::bridge_overrides, experts + more, "x"),
                                     launch::framework_called(framework).sets);
    };
    // Expert tensor parallelism is tensor parallelism until 0.6.0.
    const std::string split = "model.tensor_model_parallel_size=4 model.sequence_parallel=True ";
    CHECK(launch::settled(read(split, "megatron-bridge:0.3.1")).etp == 4);
    CHECK(launch::settled(read(split, "megatron-bridge:0.5.1")).etp == 4);
    CHECK(launch::settled(read(split, "megatron-bridge:0.6.0")).etp == 1);
    CHECK(launch::settled(read(split, "megatron-core:0.19.0")).etp == 4);
    // Sequence parallelism without tensor parallelism is turned off from 0.4 on.
    CHECK(broken(read("model.sequence_parallel=True", "megatron-bridge:0.3.1"), "megatron-bridge:0.3.1") ==
          Ids{"sequence-parallel"});
    CHECK(broken(read("model.sequence_parallel=True", "megatron-bridge:0.4.2"), "megatron-bridge:0.4.2").empty());
    // And the rules of 0.17, 0.18 and 0.19.
    const std::string score = "model.moe_router_score_function=sqrtsoftplus ";
    CHECK(broken(read(score, "megatron-bridge:0.4.2"), "megatron-bridge:0.4.2") == Ids{"router-score"});
    CHECK(broken(read(score, "megatron-bridge:0.5.1"), "megatron-bridge:0.5.1").empty());
    const std::string norm = "model.recompute_granularity=selective model.recompute_modules=[gdn_norm_out] ";
    CHECK(broken(read(norm, "megatron-bridge:0.5.1"), "megatron-bridge:0.5.1") == Ids{"recompute-modules"});
    CHECK(broken(read(norm, "megatron-bridge:0.6.0"), "megatron-bridge:0.6.0").empty());
}
