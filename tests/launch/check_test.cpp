// A launch from its words to the answer: models, memory, what would make it fit.
#include "pipeweaver/launch/check.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/launch/model.hpp"
#include "pipeweaver/workloads/built_model.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "tests/support/shared.hpp"
#include "tests/support/temporary.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using launch::Dialect;

namespace {

// Llama 3 8B by its sizes.
const std::string llama =
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention "
    "--num-query-groups 8 --swiglu --untie-embeddings-and-output-weights --disable-bias-linear --seq-length 8192 "
    "--max-position-embeddings 8192 --padded-vocab-size 128256 --micro-batch-size 1 --global-batch-size 32 --bf16 ";

launch::CheckAsked asked(const std::string& text, const std::string& cluster = "h100-sxm:16",
                         Dialect dialect = Dialect::megatron_arguments) {
    launch::CheckAsked of;
    of.said = launch::read_words(dialect, text, "--args");
    of.cluster = cluster;
    return of;
}

launch::Checked check(const launch::CheckAsked& of) { return launch::check(of, in_order); }

}  // namespace

TEST_CASE("a launch that says the sizes of a catalogue's model is that model") {
    const auto l =
        launch::settled(launch::read_megatron(launch::read_words(Dialect::megatron_arguments, llama, "--args")));
    auto said = launch::model_of(l).model;
    const auto known = workloads::model("llama3-8b");
    const auto& a = said.modules.front().architecture;
    const auto& b = known.modules.front().architecture;
    CHECK(a.layers == b.layers);
    CHECK(a.ffn == b.ffn);
    CHECK(a.kv_heads == b.kv_heads);
    CHECK(a.head_dim == b.head_dim);
    CHECK(a.vocab == b.vocab);
    CHECK(a.gated == b.gated);
    CHECK(a.tied_embeddings == b.tied_embeddings);
    CHECK(a.qkv_bias == b.qkv_bias);
    CHECK(said.microbatch_tokens == 8192);
}

TEST_CASE("by its sizes and by its name a model takes the same memory") {
    const std::string layout = "--pipeline-model-parallel-size 4 --use-distributed-optimizer ";
    const auto by_sizes = check(asked(llama + layout));
    auto named = asked("--seq-length 8192 --micro-batch-size 1 --global-batch-size 32 --bf16 " + layout);
    named.model = "llama3-8b";
    const auto by_name = check(named);
    REQUIRE(by_sizes.fit);
    REQUIRE(by_name.fit);
    CHECK(by_sizes.fit->ranks.size() == 4);
    for (std::size_t r = 0; r < 4; ++r) CHECK(by_sizes.fit->ranks[r].peak == by_name.fit->ranks[r].peak);
}

TEST_CASE("a model with an encoder of text is refused by name") {
    CHECK_THROWS_WITH_AS(launch::read_script("torchrun pretrain_t5.py --encoder-num-layers 12 --decoder-num-layers 12 "
                                             "--hidden-size 768 --bf16",
                                             "t5.sh"),
                         doctest::Contains("launches Megatron-LM's T5, RETRO or vision trainer, which is not read"),
                         Error);
    const auto own = asked("--encoder-num-layers 12 --decoder-num-layers 12 --hidden-size 768 --bf16");
    CHECK_THROWS_WITH_AS(check(own), doctest::Contains("--decoder-num-layers: makes it an encoder and a decoder"),
                         Error);
}

TEST_CASE("trainers that are not read are refused by name, by their programs and their files") {
    using Pairs = std::vector<std::pair<std::string, std::string>>;
    for (const auto& [name, command] :
         Pairs{{"OpenRLHF", "deepspeed --module openrlhf.cli.train_ppo --bf16"},
               {"axolotl", "accelerate launch -m axolotl.cli.train a.yaml"},
               {"torchtune", "tune run --nproc_per_node 8 full_finetune_distributed"},
               {"xtuner", "NPROC_PER_NODE=8 xtuner train a.py --deepspeed deepspeed_zero3"},
               {"LitGPT", "litgpt finetune_full meta-llama/Llama-2-7b-hf --devices 4"}}) {
        const std::string says = "launches " + name + ", which is not read";
        CHECK_THROWS_WITH_AS(launch::read_script(command, "a.sh"), doctest::Contains(says.c_str()), Error);
    }
    for (const auto& [name, text] : Pairs{{"axolotl", "base_model: M\nsequence_len: 512\nmicro_batch_size: 1\n"},
                                          {"torchtune", "model:\n  _component_: torchtune.models.llama3_70b\n"}}) {
        const std::string says = "is of " + name + ", which is not read";
        const auto path = testing::written(name + ".yaml", text);
        CHECK_THROWS_WITH_AS(launch::read_launch(path, std::nullopt), doctest::Contains(says.c_str()), Error);
    }
}

TEST_CASE("variables that leave out kinds of attention go with the backend that is said, or nothing is built") {
    const auto of = [](const std::string& variables, const std::string& more) {
        launch::CheckAsked one;
        one.said = launch::read_script(variables + "torchrun pretrain_gpt.py " + llama + more, "launch.sh");
        one.cluster = "h200-sxm:8";
        const auto checked = check(one);
        return checked.constructs() ? std::string() : std::string(checked.broken.front().id);
    };
    const std::string eager = "export NVTE_FLASH_ATTN=0\nexport NVTE_FUSED_ATTN=0\n";
    CHECK(of(eager, "") == "attention-variables");
    CHECK(of(eager, "--attention-backend unfused").empty());
    CHECK(of(eager, "--attention-backend fused") == "attention-variables");
    CHECK(of("NVTE_FUSED_ATTN=0 ", "--attention-backend flash").empty());
    CHECK(of("NVTE_FLASH_ATTN=1 ", "").empty());
}

// alibaba/ROLL mcore_adapter model_utils.py check_and_get_attention_backend_by_env
TEST_CASE("mcore_adapter takes the backend of attention from variables, which Megatron Core then has the same way") {
    const auto of = [](const std::string& variables) {
        launch::CheckAsked one;
        one.said = launch::read_script(
            variables +
                "USE_MCA=1 llamafactory-cli train --stage sft --finetuning_type full --cutoff_len 2048 "
                "--model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 1 --bf16 true "
                "--tensor_model_parallel_size 4 --use_distributed_optimizer true",
            "launch.sh");
        one.model = "qwen2.5-7b";
        one.cluster = "b200-sxm:8";
        const auto checked = check(one);
        return checked.constructs() ? std::string() : std::string(checked.broken.front().id);
    };
    CHECK(of("NVTE_FLASH_ATTN=0 NVTE_FUSED_ATTN=1 ").empty());
    CHECK(of("NVTE_FLASH_ATTN=0 NVTE_FUSED_ATTN=0 NVTE_UNFUSED_ATTN=0 ").empty());
    CHECK(of("NVTE_FLASH_ATTN=0 ") == "attention-variables");  // auto, which takes 1
}

TEST_CASE("what does not fit says the rank, the bytes, and changes with which it does") {
    const auto checked = check(asked(llama, "h100-sxm:8"));
    CHECK(checked.constructs());
    REQUIRE(checked.fit);
    CHECK_FALSE(checked.fit->fits());
    CHECK(checked.fit->short_by() == checked.fit->ranks[0].peak - checked.fit->usable);
    REQUIRE(!checked.changes.empty());
    for (const auto& change : checked.changes) CHECK(change.fit.fits());
    // Said in its place, the first change fits.
    const auto again = check(asked(llama + checked.changes.front().say, "h100-sxm:8"));
    REQUIRE(again.fit);
    CHECK(again.fit->fits());
    CHECK(again.fit->ranks[0].peak == checked.changes.front().fit.ranks[0].peak);
}

TEST_CASE("what makes a sharded launch fit takes what it takes when it is launched") {
    const auto swift = [](const std::string& more) {
        launch::CheckAsked of;
        of.said = launch::read_script(
            "swift sft --model Qwen/Qwen2.5-14B --dataset d.jsonl --train_type full --torch_dtype bfloat16 "
            "--attn_impl flash_attn --per_device_train_batch_size 1 --packing true --max_length 8192 " +
                more,
            "launch.sh");
        of.cluster = "a100-sxm:8";
        return check(of);
    };
    const auto checked = swift("--deepspeed zero2");
    REQUIRE(checked.fit);
    CHECK_FALSE(checked.fit->fits());
    const auto peak_of = [&](const std::string& words) {
        for (const auto& change : checked.changes)
            if (change.say.find(words) != std::string::npos) return change.fit.ranks[0].peak;
        return Bytes{0};
    };
    const auto launched = [&](const std::string& more) { return swift(more).fit->ranks[0].peak; };
    CHECK(peak_of("--use_liger_kernel true") == launched("--deepspeed zero2 --use_liger_kernel true"));
    CHECK(peak_of("offload_optimizer to cpu") == launched("--deepspeed zero2_offload"));
}

TEST_CASE("a model's name that a script leaves to its caller is not asked for where --model says one") {
    launch::CheckAsked of;
    of.said = launch::read_script(
        "swift sft --model $MODEL_PATH --train_type full --torch_dtype bfloat16 --max_length 4096 --deepspeed zero3\n",
        "launch.sh");
    of.cluster = "a100-sxm:8";
    CHECK(check(of).verdict == launch::Verdict::undecided);
    of.model = "qwen2.5-7b";
    CHECK(check(of).verdict == launch::Verdict::fits);
}

TEST_CASE("more recomputation, a distributed optimizer and fewer layers take less memory of a rank") {
    const auto peak = [](const std::string& more, std::size_t rank) {
        return check(asked(llama + "--pipeline-model-parallel-size 4 " + more)).fit->ranks[rank].peak;
    };
    const Bytes plain = peak("", 0);
    CHECK(peak("--use-distributed-optimizer", 0) < plain);
    const Bytes four = peak("--recompute-granularity full --recompute-method block --recompute-num-layers 4", 0);
    CHECK(four < plain);
    CHECK(peak("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", 0) < four);
    CHECK(peak("--decoder-first-pipeline-num-layers 5", 0) < plain);
}

TEST_CASE("sizes that contradict a model, and sizes that nobody says, are errors by name") {
    auto other = asked("--num-layers 31 --seq-length 8192 --micro-batch-size 1");
    other.model = "llama3-8b";
    CHECK_THROWS_WITH_AS(check(other), "--num-layers: is 31, but llama3-8b has 32", Error);
    CHECK_THROWS_WITH_AS(
        check(asked("--num-layers 8 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --micro-batch-size 1 "
                    "--max-position-embeddings 64")),
        "missing --vocab-size: say it or --padded-vocab-size, or name a model with --model", Error);
    auto images = asked(
        "--seq-length 8192 --micro-batch-size 1 --pipeline-model-parallel-size 4 "
        "--tensor-model-parallel-size 4 --sequence-parallel");
    images.model = "qwen2.5-vl-7b";
    CHECK_THROWS_AS(check(images), Error);
}

TEST_CASE("torchtitan: its layers, and receive buffers of all microbatches") {
    auto of = asked(
        "--parallelism.pipeline_parallel_degree 4 --training.disable_cuda_graphs --training.seq_len 8192 "
        "--training.local_batch_size 16",
        "h100-sxm:8", Dialect::titan_settings);
    of.model = "llama3-8b";
    const auto checked = check(of);
    REQUIRE(checked.constructs());
    REQUIRE(checked.fit);
    CHECK(checked.layers == std::vector<std::int64_t>{8, 9, 8, 7});
    bool buffers = false;
    for (const auto& hazard : checked.hazards) buffers = buffers || hazard.id == "receive-buffers";
    CHECK(buffers);
    // A stage between others has buffers of two directions: 16 microbatches of 64 MiB each.
    CHECK(checked.fit->ranks[1].buffers >= Bytes{std::int64_t{2} * 16 * 8192 * 4096 * 2});
}

TEST_CASE("torchtitan: replicas of shards hold a copy in each, and replicas without shards the whole") {
    const auto rank = [](const std::string& degrees) {
        auto of = asked("--training.seq_len 4096 --training.local_batch_size 1 --compile.enable " + degrees,
                        "h200-sxm:8", Dialect::titan_settings);
        of.model = "llama3-8b";
        const auto checked = check(of);
        REQUIRE(checked.fit);
        return checked.fit->ranks.front();
    };
    constexpr std::int64_t parameters = 8'029'995'008;
    const std::string two = "--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 4";
    const std::string all = "--parallelism.data_parallel_replicate_degree 8 --parallelism.data_parallel_shard_degree 1";
    CHECK(rank("").weights == Bytes{2 * parameters / 8});
    CHECK(rank(two).weights == Bytes{2 * parameters / 4});
    CHECK(rank(two).gradients == Bytes{4 * parameters / 4});
    CHECK(rank(two).optimizer == Bytes{10 * parameters / 4});
    CHECK(rank(all).weights == Bytes{2 * parameters});
    CHECK(rank(all).gradients == Bytes{4 * parameters});
    // Those that were gathered stay beside those that are updated.
    const std::string never = " --parallelism.fsdp_reshard_after_forward never";
    CHECK(rank(never).weights == Bytes{2 * parameters + 2 * parameters / 8});
    CHECK(rank(two + never).weights == Bytes{2 * parameters + 2 * parameters / 4});
    CHECK(rank(all + never).weights == Bytes{4 * parameters});
}

TEST_CASE("torchtitan: experts lie in fewer shards than the rest, in replicas, too") {
    const auto weights = [](const std::string& degrees) {
        auto of = asked(
            "--training.seq_len 4096 --training.local_batch_size 1 --compile.enable "
            "--parallelism.expert_parallel_degree 2 " +
                degrees,
            "h200-sxm:8", Dialect::titan_settings);
        of.model = "mixtral-8x7b";
        const auto checked = check(of);
        REQUIRE(checked.fit);
        return checked.fit->ranks.front().weights;
    };
    const std::string two = "--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 4";
    const std::string never = " --parallelism.fsdp_reshard_after_forward never";
    CHECK(weights(two) == 2 * weights(""));
    // Beside the shards lies all that was gathered, as much of it for any number of replicas.
    const Bytes gathered = weights(never) - weights("");
    CHECK(gathered > weights(two));
    CHECK(weights(two + never) - weights(two) == gathered);
}

namespace {

launch::CheckAsked of_bridge(const std::string& model, const std::string& text) {
    auto of = asked(
        "model.tensor_model_parallel_size=4 model.sequence_parallel=true model.seq_length=8192 "
        "train.micro_batch_size=1 train.global_batch_size=8 " +
            text,
        "h100-sxm:16", Dialect::bridge_overrides);
    of.model = model;
    return of;
}

std::string first_rule(const launch::Checked& checked) {
    return checked.broken.empty() ? std::string("none") : std::string(checked.broken.front().id);
}

}  // namespace

TEST_CASE("a first stage without its DeepStack layers does not construct") {
    const std::string qwen3_vl = "hf:" + (testing::source_folder() / "tests/data/hf/qwen3-vl-8b.json").string();
    const auto rule_of = [&](int first) {
        auto of = of_bridge(qwen3_vl, "model.pipeline_model_parallel_size=2 model.num_layers_in_first_pipeline_stage=" +
                                          std::to_string(first));
        of.fits = false;
        return first_rule(check(of));
    };
    CHECK(rule_of(2) == "encoder-layers");
    CHECK(rule_of(3) == "none");
}

TEST_CASE("an encoder that its framework builds whole is held whole by every tensor parallel GPU") {
    auto of = of_bridge("qwen2.5-vl-7b", "model.pipeline_model_parallel_size=2");
    of.dataset = "vlm-mix";
    const auto as_built = check(of);
    REQUIRE(as_built.fit);
    const auto& said = as_built.fit->assumed;
    CHECK(std::any_of(said.begin(), said.end(), [](const std::string& one) {
        return one ==
               "vit: whole on each tensor parallel GPU, all images on each context parallel group, never recomputed, "
               "as "
               "megatron-bridge builds it";
    }));
    // Three quarters of 0.6 billion parameters more, of two bytes.
    auto split = of;
    auto unknown = workloads::model("qwen2.5-vl-7b");
    unknown.family.clear();
    split.model = to_json(unknown);
    const auto as_split = check(split);
    REQUIRE(as_split.fit);
    const auto weights = [](const launch::Checked& one) { return one.fit->ranks.front().weights.count; };
    CHECK(weights(as_built) > weights(as_split) + 700'000'000);
    of.said.settings.push_back({"model.context_parallel_size", {"2"}, "--args"});
    CHECK(first_rule(check(of)) == "loss-per-token");
    of.said.settings.push_back({"model.calculate_per_token_loss", {"true"}, "--args"});
    of.fits = false;
    CHECK(first_rule(check(of)) == "encoder-context");
}

TEST_CASE("switches of a launch turn what of its encoders runs again, and how images are dealt") {
    using enum workloads::EncoderRecompute;
    const auto recompute = [](const std::string& model, const std::vector<std::string>& program,
                              const std::string& flags) {
        auto said = launch::read_words(Dialect::megatron_arguments, flags, "--args");
        said.entry = frameworks::entry_of(program);
        REQUIRE(said.entry != nullptr);
        return launch::named_model(model, said).built->recompute;
    };
    const auto swift = [&](const std::string& flags) { return recompute("qwen2.5-vl-7b", {"megatron", "sft"}, flags); };
    CHECK(swift("--bf16") == always);
    CHECK(swift("--vit_gradient_checkpointing true") == always);
    CHECK(swift("--vit_gradient_checkpointing false") == never);
    const auto example = [&](const std::string& flags) {
        return recompute("internvl3-38b", {"python", "examples/multimodal/train.py"}, flags);
    };
    CHECK(example("--bf16") == never);
    CHECK(example("--recompute-vision") == as_backbone);
    const std::string qwen3_vl = "hf:" + (testing::source_folder() / "tests/data/hf/qwen3-vl-8b.json").string();
    const auto context = [&](const std::string& overrides) {
        const auto said = launch::read_words(Dialect::bridge_overrides, overrides, "--args");
        return launch::named_model(qwen3_vl, said).modules.front().lies.context;
    };
    CHECK(context("model.vision_dp_when_cp=true") == workloads::OnContextRanks::dealt);
    CHECK(context("model.bf16=true") == workloads::OnContextRanks::each);
}

TEST_CASE("who launches a program of one's own says beside it that images are dealt") {
    const auto said = launch::read_words(Dialect::megatron_arguments, "--bf16", "--args");
    const std::string folder = (testing::source_folder() / "tests/data/hf").string();
    const auto dealt = [&](const std::string& model, const launch::AskedEncoders& how) {
        return workloads::deals_images(launch::named_model("hf:" + folder + model, said, how));
    };
    CHECK_FALSE(dealt("/qwen3-vl-8b.json", {}));
    CHECK(dealt("/qwen3-vl-8b.json", {.deals_images = true}));
    CHECK(dealt("/qwen3-vl-8b.json", {.built_by = "megatron-bridge", .deals_images = true}));
    CHECK_THROWS_WITH_AS(dealt("/qwen2.5-vl-7b.json", {.deals_images = true}),
                         doctest::Contains("megatron-bridge has no switch for it"), Error);
    CHECK_THROWS_WITH_AS(dealt("/qwen3-vl-8b.json", {.built_by = "split", .deals_images = true}),
                         doctest::Contains("a model whose encoders a framework builds"), Error);
}

TEST_CASE("LoongForge's launches name their model or its file, and only what pretrains fills its microbatches") {
    const auto of = [](const std::string& more) {
        launch::CheckAsked one;
        one.said = launch::read_script(
            "torchrun --nproc_per_node 8 $HOME_OF/loongforge/train.py --seq-length 4096 --max-position-embeddings 4096 "
            "--global-batch-size 64 --bf16 --use-distributed-optimizer --tensor-model-parallel-size 2 "
            "--sequence-parallel " +
                more,
            "launch.sh", std::nullopt, {{"HOME_OF", "/work"}});
        one.cluster = "h100-sxm:8";
        return one;
    };
    const std::string named = "--model-name qwen2.5-7b --training-phase ";
    const auto one = check(of(named + "sft --micro-batch-size 1"));
    CHECK(one.entry == "LoongForge");
    CHECK(one.verdict == launch::Verdict::fits);
    const auto by_file = of("--config-file /work/configs/qwen2.5/qwen2_5_7b.yaml --micro-batch-size 1");
    REQUIRE(check(by_file).fit);
    CHECK(check(by_file).fit->ranks[0].peak == one.fit->ranks[0].peak);
    CHECK(check(of(named + "pretrain --micro-batch-size 16")).verdict == launch::Verdict::does_not_fit);
    const auto short_samples = check(of(named + "sft --micro-batch-size 16"));
    CHECK(short_samples.verdict == launch::Verdict::undecided);
    REQUIRE(!short_samples.open.empty());
    CHECK(short_samples.open[0].setting == "--dataset");
    const auto frozen = check(of(named + "pretrain --micro-batch-size 16 +model.foundation.freeze=True"));
    CHECK(frozen.verdict == launch::Verdict::undecided);
    REQUIRE(frozen.open.size() == 1);
    CHECK(frozen.open[0].setting == "model.foundation.freeze");
    const auto other = check(of("+model.foundation.num_layers=2 " + named + "sft --micro-batch-size 1"));
    CHECK(other.verdict == launch::Verdict::undecided);
    CHECK_THROWS_AS(launch::read_script("torchrun /w/loongforge/embodied/train.py --bf16 --seq-length 8", "a.sh"),
                    Error);
}

TEST_CASE("state spaces that tensor parallelism does not share out are no bad input") {
    // Falcon-H1 34B has 2 groups of Mamba-2 and 4 key and value heads.
    auto core = asked(
        "--tensor-model-parallel-size 4 --sequence-parallel --seq-length 2048 --max-position-embeddings "
        "4096 --micro-batch-size 1 --global-batch-size 8 --bf16 --use-distributed-optimizer");
    core.model = "falcon-h1-34b";
    const auto refused = check(core);
    CHECK(refused.verdict == launch::Verdict::does_not_construct);
    REQUIRE(refused.broken.size() == 1);
    CHECK(refused.broken.front().id == "mamba-by-tp");

    // NeMo AutoModel leaves them whole on every GPU, and ran it so (NVIDIA-NeMo/Automodel, pull request 2589).
    const auto sharded = [](const std::string& tp) {
        launch::CheckAsked of;
        of.said = launch::read_script(
            "torchrun examples/llm_finetune/finetune.py --peft.dim 8 --dataset.seq_length 512 "
            "--step_scheduler.local_batch_size 1 --distributed.tp_size " +
                tp,
            "launch.sh");
        of.cluster = "h200-sxm:8";
        of.model = "falcon-h1-34b";
        return check(of);
    };
    for (const char* tp : {"2", "4"}) {
        const auto open = sharded(tp);
        CHECK(open.verdict == launch::Verdict::undecided);
        REQUIRE(!open.open.empty());
        CHECK(open.open.front().setting == "--distributed.tp_size");
        CHECK(open.fit.has_value() == (std::string(tp) == "2"));
    }
    CHECK(sharded("1").verdict == launch::Verdict::fits);
}
