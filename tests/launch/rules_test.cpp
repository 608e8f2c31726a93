// Rules of frameworks, one launch each that keeps and breaks them.
#include "pipeweaver/launch/rules.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/launch/hazards.hpp"
#include "pipeweaver/launch/said.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
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

std::vector<std::string> ids(const std::vector<launch::BrokenRule>& broken) {
    std::vector<std::string> all;
    all.reserve(broken.size());
    for (const auto& rule : broken) all.emplace_back(rule.id);
    return all;
}

launch::MegatronLaunch arguments(const std::string& more) {
    return launch::read_megatron(launch::read_words(Dialect::megatron_arguments, usual + more, "--megatron-args"));
}

// What the usual launch on 64 GPUs breaks with `more`.
std::vector<std::string> broken(const std::string& more, const char* framework = "megatron-core") {
    return ids(launch::broken_rules(arguments(more), 64, launch::framework_called(framework)));
}

using Ids = std::vector<std::string>;

launch::TitanLaunch titan(const std::string& text) {
    auto l = launch::read_titan(
        launch::read_words(Dialect::titan_settings, "--training.disable_cuda_graphs " + text, "--torchtitan-args"));
    l.layers = 32;
    l.heads = 32;
    l.kv_heads = 8;
    return l;
}

Ids broken_titan(const std::string& text) {
    return ids(launch::broken_rules(titan(text), 8, launch::framework_called("torchtitan")));
}

}  // namespace

TEST_CASE("what is constructed breaks no rule") {
    CHECK(broken("").empty());
    CHECK(broken("--num-virtual-stages-per-pipeline-rank 2").empty());
    CHECK(broken("--num-layers-per-virtual-pipeline-stage 4").empty());
    CHECK(broken("--decoder-first-pipeline-num-layers 5 --decoder-last-pipeline-num-layers 7").empty());
    CHECK(broken("--pipeline-model-parallel-layout Et*7|t*8|t*8|t*9L").empty());
    CHECK(broken("--custom-pipeline-layers 5,9,9,9").empty());
}

TEST_CASE("layers, chunks and layouts of ranks") {
    CHECK(broken("--num-layers 33") == Ids{"rank-layers"});
    CHECK(broken("--num-virtual-stages-per-pipeline-rank 3") == Ids{"layers-built"});
    CHECK(broken("--num-layers-per-virtual-pipeline-stage 3") == Ids{"chunk-layers"});
    CHECK(broken("--num-layers-per-virtual-pipeline-stage 4 --decoder-first-pipeline-num-layers 5") ==
          Ids{"chunk-layers"});
    CHECK(broken("--decoder-first-pipeline-num-layers 6") == Ids{"end-layers"});
    CHECK(broken("--decoder-first-pipeline-num-layers 0") == Ids{"end-layers"});
    CHECK(broken("--pipeline-model-parallel-layout Et*7|t*8|t*8|t*8L") == Ids{"layout-valid"});
    CHECK(broken("--pipeline-model-parallel-layout Et*7|t*8|t*17L") == Ids{"layout-stages"});
    CHECK(broken("--pipeline-model-parallel-layout Et*7|t*8|t*8|x*9L") == Ids{"layout-stages"});
    CHECK(broken("--pipeline-model-parallel-layout Et*7|t*8|t*8|t*9L --num-virtual-stages-per-pipeline-rank 2") ==
          Ids{"chunks-said-once"});
    CHECK(broken("--pipeline-model-parallel-layout Et*7|t*8|t*8|t*9L --decoder-first-pipeline-num-layers 7") ==
          Ids{"layout-alone"});
    CHECK(broken("--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 "
                 "--no-overlap-p2p-communication") == Ids{"interleaved-ranks"});
    CHECK(broken("--custom-pipeline-layers 5,9,9,8") == Ids{"layers-built"});
}

TEST_CASE("patterns of hybrid models, which the version of the package has not") {
    CHECK(broken("--hybrid-layer-pattern M*|M*|M*|M-") == Ids{"hybrid-pattern"});
    CHECK(broken("--hybrid-layer-pattern M*|M*|M*|M-", "megatron-core:0.20.0").empty());
    CHECK(broken("--hybrid-layer-pattern M*|M*|M*", "megatron-core:0.20.0") == Ids{"layers-built"});
    CHECK(broken("--hybrid-layer-pattern M*M*|M* --decoder-first-pipeline-num-layers 4", "megatron-core:0.20.0") ==
          Ids{"hybrid-pattern"});
}

TEST_CASE("sizes by degrees") {
    CHECK(broken("--context-parallel-size 3") == Ids{"world-size", "sequence-by-context"});
    CHECK(broken("--num-attention-heads 34 --kv-channels 128") == Ids{"heads-by-tp", "groups-by-tp"});
    CHECK(broken("--group-query-attention --num-query-groups 3") == Ids{"groups-by-tp"});
    CHECK(broken("--ffn-hidden-size 11007") == Ids{"widths-by-tp"});
    CHECK(broken("--padded-vocab-size 32001") == Ids{"vocabulary-by-tp"});
    CHECK(broken("--seq-length 4098 --max-position-embeddings 5000") == Ids{"sequence-by-tp"});
    CHECK(broken("--global-batch-size 63") == Ids{"global-batch"});
    CHECK(broken("--max-position-embeddings 2048") == Ids{"positions"});
    CHECK(broken("--tensor-model-parallel-size 2 --context-parallel-size 8 --cp-comm-type a2a").empty());
    CHECK(broken("--context-parallel-size 4 --group-query-attention --num-query-groups 8 --cp-comm-type a2a") ==
          Ids{"exchanged-heads"});
}

TEST_CASE("the interleaved schedule's groups of microbatches") {
    const std::string chunks = "--num-virtual-stages-per-pipeline-rank 2 ";
    CHECK(broken(chunks + "--microbatch-group-size-per-virtual-pipeline-stage 2") == Ids{"group-size"});
    CHECK(broken(chunks + "--microbatch-group-size-per-virtual-pipeline-stage 17") == Ids{"group-size"});
    CHECK(broken(chunks + "--global-batch-size 24") == Ids{"last-group"});
    CHECK(broken(chunks + "--global-batch-size 24 --microbatch-group-size-per-virtual-pipeline-stage 6").empty());
}

TEST_CASE("recomputation in Megatron Core's words, by version") {
    CHECK(broken("--recompute-granularity full") == Ids{"full-method", "full-layers"});
    CHECK(broken("--recompute-granularity selective --recompute-num-layers 2") == Ids{"selective-layers"});
    CHECK(broken("--recompute-activations --recompute-method uniform") == Ids{"selective-method"});
    CHECK(broken("--recompute-granularity selective --recompute-modules mhc") == Ids{"recompute-modules"});
    CHECK(broken("--recompute-granularity selective --recompute-modules mhc", "megatron-core:0.20.0").empty());
    CHECK(broken("--recompute-granularity selective --recompute-modules moe_act") == Ids{"recompute-moe-act"});
}

TEST_CASE("experts") {
    const std::string experts = "--num-experts 8 --moe-ffn-hidden-size 1024 --moe-token-dispatcher-type alltoall ";
    CHECK(broken(experts + "--expert-model-parallel-size 2").empty());
    CHECK(broken(experts + "--expert-model-parallel-size 3") == Ids{"experts-by-ep"});
    CHECK(broken("--expert-model-parallel-size 2") == Ids{"experts-by-ep"});
    CHECK(broken(experts + "--moe-router-topk 1") == Ids{"router-pre-softmax"});
    CHECK(broken(experts + "--expert-model-parallel-size 2 --overlap-moe-expert-parallel-comm") ==
          Ids{"expert-overlap"});
    CHECK(broken(experts + "--expert-model-parallel-size 2 --overlap-moe-expert-parallel-comm "
                           "--num-virtual-stages-per-pipeline-rank 2")
              .empty());
    CHECK(broken("--moe-ffn-hidden-size 1024") == Ids{"expert-width"});
}

TEST_CASE("overrides go to the configuration alone: what the arguments correct, it refuses") {
    const auto read = [](const std::string& more) {
        return launch::read_megatron(launch::read_words(
            Dialect::bridge_overrides,
            "model.num_layers=8 model.hidden_size=64 model.num_attention_heads=4 model.seq_length=64 "
            "train.micro_batch_size=1 " +
                more,
            "x"));
    };
    const auto& framework = launch::framework_called("megatron-core");
    CHECK(launch::broken_rules(read(""), 8, framework).empty());
    CHECK(ids(launch::broken_rules(read("model.sequence_parallel=True"), 8, framework)) == Ids{"sequence-parallel"});
    CHECK(ids(launch::broken_rules(read("model.pipeline_model_parallel_size=2 model.pipeline_model_parallel_layout="
                                        "[[embedding,encoder,decoder],[decoder,loss]] model.num_layers=2"),
                                   8, framework)) == Ids{"layout-encoder"});
    CHECK(ids(launch::broken_rules(read("model.virtual_pipeline_model_parallel_size=2"), 8, framework)) ==
          Ids{"groups-chunks"});
}

TEST_CASE("a size that nothing says is asked for by the name that the launch would have") {
    const auto l = launch::read_megatron(launch::read_words(Dialect::bridge_overrides, "model.num_layers=8", "x"));
    CHECK_THROWS_WITH_AS(launch::broken_rules(l, 8, launch::framework_called("megatron-core")),
                         "model.hidden_size: is missing, and --model, too, which may say sizes of a model", Error);
    CHECK_THROWS_WITH_AS(launch::framework_called("megatron-core:9"),
                         "--framework: is 'megatron-core:9', allowed are megatron-core:0.16.1, megatron-core:0.20.0, "
                         "torchtitan:0.3.0",
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
    CHECK(broken_titan("").empty());
    CHECK(broken_titan("--parallelism.pipeline_parallel_degree 2").empty());
    const auto layers = [](const std::string& text) { return launch::built_layers(titan(text)).layers; };
    using Layers = std::vector<std::int64_t>;
    CHECK(layers("--parallelism.pipeline_parallel_degree 4") == Layers{8, 9, 8, 7});
    CHECK(layers("--parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule Interleaved1F1B") ==
          Layers{8, 9, 8, 7});
    CHECK(layers("--parallelism.pipeline_parallel_degree 2 --parallelism.module_fqns_per_model_part "
                 "tok_embeddings,layers.0 layers.1,norm") == Layers{1, 1});
}

TEST_CASE("torchtitan's rules") {
    const std::string pp2 = "--parallelism.pipeline_parallel_degree 2 ";
    CHECK(broken_titan("--parallelism.tensor_parallel_degree 3") == Ids{"world"});
    CHECK(broken_titan("--parallelism.tensor_parallel_degree 16") == Ids{"shards"});
    CHECK(broken_titan(pp2 + "--training.no_disable_cuda_graphs") == Ids{"cuda-graphs"});
    CHECK(broken_titan(pp2 + "--parallelism.pipeline_parallel_schedule 2F2B") == Ids{"schedule"});
    CHECK(broken_titan(pp2 + "--parallelism.pipeline_parallel_schedule ZBVZeroBubble "
                             "--parallelism.pipeline_parallel_layers_per_stage 5") == Ids{"stages"});
    CHECK(broken_titan(pp2 + "--parallelism.pipeline_parallel_schedule DualPipeV --training.local_batch_size 2") ==
          Ids{"enough-microbatches"});
    CHECK(
        broken_titan(pp2 + "--parallelism.pipeline_parallel_schedule Interleaved1F1B --training.local_batch_size 5") ==
        Ids{"rounds"});
    CHECK(broken_titan(pp2 + "--parallelism.pipeline_parallel_schedule PipelineScheduleMulti") ==
          Ids{"empty-schedule"});
    CHECK(broken_titan(pp2 + "--parallelism.module_fqns_per_model_part a b c") == Ids{"stages-by-pp"});
    CHECK(broken_titan("--training.seq_len 2049 --parallelism.tensor_parallel_degree 2") == Ids{"sequence"});
}

TEST_CASE("hazards name their threads, and come with what causes them alone") {
    const std::string experts =
        "--num-experts 8 --moe-ffn-hidden-size 1024 --moe-token-dispatcher-type alltoall --expert-model-parallel-size "
        "2 "
        "--overlap-moe-expert-parallel-comm ";
    const auto found = [](const std::string& more, bool varied) {
        launch::HazardAsked asked{.gpus = 64, .device = "b200", .varied = varied};
        std::set<std::string> all;
        for (const auto& hazard : launch::hazards_of(arguments(more), asked)) all.emplace(hazard.id);
        return all;
    };
    using Found = std::set<std::string>;
    CHECK(found("", false).empty());
    CHECK(found(experts + "--pipeline-model-parallel-layout Et*3|t*4|t*4|t*4|t*4|t*4|t*4|t*5L", false) ==
          Found{"uneven-expert-overlap", "many-transfers"});
    const std::string chunks = experts + "--num-virtual-stages-per-pipeline-rank 2 --global-batch-size 32";
    CHECK(found(chunks, true) == Found{"varied-chunks"});
    CHECK(found(chunks, false).empty());
    CHECK(found("--num-query-groups 8", false) == Found{"groups-ignored"});
    CHECK(found("--tensor-model-parallel-size 1", false) == Found{"sequence-parallel-off"});
}

TEST_CASE("chunks of lengths that vary are a hazard until the launch says variable_seq_lengths, and it says so") {
    const auto found = [](const launch::MegatronLaunch& said) {
        const launch::HazardAsked asked{.gpus = 64, .device = "b200", .varied = true};
        std::string all;
        for (const auto& hazard : launch::hazards_of(said, asked))
            if (hazard.id == "varied-chunks") all += hazard.why;
        return all;
    };
    launch::MegatronLaunch said = arguments("--num-virtual-stages-per-pipeline-rank 2 --global-batch-size 32");
    CHECK(found(said).find("no argument says variable_seq_lengths: set it in the model's") != std::string::npos);
    said.dialect = launch::Dialect::bridge_overrides;
    said.vpp = 2;  // overrides say it themselves
    CHECK(found(said).find("say model.variable_seq_lengths=true") != std::string::npos);
    said.variable_lengths = true;
    CHECK(found(said).empty());
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
