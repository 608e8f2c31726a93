// What a launch says beside its layers, in the memory that is told for it.
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/launch/check.hpp"
#include "pipeweaver/launch/fit.hpp"
#include "pipeweaver/launch/megatron.hpp"
#include "pipeweaver/launch/model.hpp"
#include "pipeweaver/launch/rules.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>

using namespace pipeweaver;

namespace {

const std::string step_of_4096 =
    "--seq-length 4096 --micro-batch-size 1 --global-batch-size 64 --bf16 --hidden-dropout 0 ";
const std::string on_four_ranks = step_of_4096 + "--pipeline-model-parallel-size 4 ";
const std::string rotary = "--position-embedding-type rope ";

launch::Checked of_model(const std::string& model, const std::string& text, const std::string& cluster = "h200-sxm:8") {
    launch::CheckAsked asked;
    asked.said = launch::read_words(launch::Dialect::megatron_arguments, text, "--args");
    asked.cluster = cluster;
    asked.model = model;
    return launch::check(asked, in_order);
}

const launch::RankUse& last_of(const launch::Checked& checked) { return checked.fit->ranks.back(); }

bool says(const std::vector<std::string>& sentences, const std::string& words) {
    return std::any_of(sentences.begin(), sentences.end(),
                       [&](const std::string& one) { return one.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE(
    "multi-token prediction adds a block, a projection, a copy of the embedding and its logits to the last rank") {
    const auto without = of_model("llama3-8b", on_four_ranks + rotary);
    const auto with = of_model("llama3-8b", on_four_ranks + rotary + "--mtp-num-layers 1");
    REQUIRE(with.fit);
    const auto model = workloads::model("llama3-8b");
    const auto& network = model.modules[0].architecture;
    const std::int64_t h = network.hidden, v = network.vocab, m = 4096;
    const std::int64_t more = layer_parameters(network, 0) + 2 * h * h + v * h;
    CHECK(last_of(with).weights - last_of(without).weights == Bytes{2 * more});
    CHECK(last_of(with).gradients - last_of(without).gradients == Bytes{4 * more});
    CHECK(last_of(with).optimizer - last_of(without).optimizer == Bytes{12 * more});
    // Logits once more, in 16 bits and in 32, and six values of a position beside the block.
    CHECK(last_of(with).activations - last_of(without).activations > Bytes{6 * m * v + 12 * m * h});
    CHECK(with.fit->ranks[0].peak == without.fit->ranks[0].peak);
    CHECK(with.fit->step > without.fit->step);
    CHECK(says(with.assumed, "1 layer of multi-token prediction on the last stage"));
    CHECK(with.fit->doubts.size() == without.fit->doubts.size());
}

TEST_CASE("without a pipeline the embedding is there, and multi-token prediction copies none") {
    const auto without = of_model("llama3-8b", step_of_4096 + rotary + "--use-distributed-optimizer");
    const auto with = of_model("llama3-8b", step_of_4096 + rotary + "--use-distributed-optimizer --mtp-num-layers 1");
    REQUIRE(with.fit);
    const auto model = workloads::model("llama3-8b");
    const auto& network = model.modules[0].architecture;
    const std::int64_t more = layer_parameters(network, 0) + 2 * network.hidden * network.hidden;
    CHECK(last_of(with).weights - last_of(without).weights == Bytes{2 * more});
}

TEST_CASE("models that mix linear and full attention are judged, with multi-token prediction, recomputation and LoRA") {
    for (const char* model : {"qwen3.5-27b-llm", "qwen3-next-80b-a3b"})
        for (const char* more : {"", "--mtp-num-layers 1", "--mtp-num-layers 2", "--recompute-granularity selective",
                                 "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
                                 "--tuner-type lora --lora-rank 8 --mtp-num-layers 1"}) {
            CAPTURE(model);
            CAPTURE(more);
            const auto checked = of_model(model,
                                          on_four_ranks + rotary + "--moe-token-dispatcher-type alltoall " +
                                              "--expert-model-parallel-size 1 " + more,
                                          "h200-sxm:32");
            CHECK(checked.constructs());
            REQUIRE(checked.fit);
            CHECK(last_of(checked).peak > Bytes{});
        }
}

TEST_CASE("a block of multi-token prediction of a hybrid is as its last one") {
    const auto without = of_model("qwen3.5-27b-llm", on_four_ranks + rotary);
    const auto with = of_model("qwen3.5-27b-llm", on_four_ranks + rotary + "--mtp-num-layers 1");
    REQUIRE(with.fit);
    const auto model = workloads::model("qwen3.5-27b-llm");
    const auto& network = model.modules[0].architecture;
    const std::int64_t last = layer_parameters(network, network.layers - 1);
    CHECK(block_kind(network, network.layers - 1) == workloads::BlockKind::plain);
    const std::int64_t more = last + 2 * network.hidden * network.hidden + network.vocab * network.hidden;
    CHECK(last_of(with).weights - last_of(without).weights == Bytes{2 * more});
}

TEST_CASE("multi-token prediction behind blocks of two attentions side by side has one more of them") {
    const auto without = of_model("falcon-h1-7b", on_four_ranks + rotary);
    const auto with = of_model("falcon-h1-7b", on_four_ranks + rotary + "--mtp-num-layers 1");
    REQUIRE((with.fit && without.fit));
    const auto model = workloads::find_model("falcon-h1-7b");
    const auto& network = model.modules[0].architecture;
    REQUIRE(block_kind(network, network.layers - 1) == workloads::BlockKind::parallel);
    // What a model with an output head of its own has not on its last stage: the embedding.
    const std::int64_t copied = network.tied_embeddings ? 0 : network.vocab * network.hidden;
    const std::int64_t more =
        layer_parameters(network, network.layers - 1) + 2 * network.hidden * network.hidden + copied;
    CHECK(last_of(with).weights - last_of(without).weights == Bytes{2 * more});
}

TEST_CASE("adapters of routed experts are a pair for each in ms-swift, one for all of a GPU in Megatron-Bridge") {
    const auto gradients = [](launch::Dialect dialect, const std::string& text) {
        launch::CheckAsked asked;
        asked.said = launch::read_words(dialect, text, "--args");
        asked.cluster = "h200-sxm:8";
        asked.model = "qwen3-30b-a3b";
        const auto checked = launch::check(asked, in_order);
        REQUIRE(checked.fit);
        CHECK(checked.fit->doubts.empty());
        return checked.fit->ranks[0].gradients;
    };
    const auto model = workloads::model("qwen3-30b-a3b");
    const auto& network = model.modules[0].architecture;
    const std::int64_t pairs = 8 * (2 * network.hidden + 3 * network.moe->expert_ffn), layers = network.layers;
    const std::string arguments = step_of_4096 + rotary +
                                  "--expert-model-parallel-size 8 --moe-token-dispatcher-type alltoall "
                                  "--tuner-type lora --lora-rank 8 --target-modules linear_qkv linear_proj ";
    const auto by_arguments = [&](const std::string& more) {
        return gradients(launch::Dialect::megatron_arguments, arguments + more);
    };
    CHECK(by_arguments("linear_fc1 linear_fc2") - by_arguments("") ==
          Bytes{4 * layers * network.moe->experts / 8 * pairs});

    const std::string overrides =
        "model.seq_length=4096 train.micro_batch_size=1 train.global_batch_size=64 model.bf16=true "
        "model.hidden_dropout=0 model.expert_model_parallel_size=8 model.moe_token_dispatcher_type=alltoall "
        "peft.dim=8 peft.target_modules=";
    const auto by_overrides = [&](const std::string& targets) {
        return gradients(launch::Dialect::bridge_overrides, overrides + targets);
    };
    CHECK(by_overrides("[linear_qkv,linear_proj,linear_fc1,linear_fc2]") - by_overrides("[linear_qkv,linear_proj]") ==
          Bytes{4 * layers * pairs});
}

TEST_CASE("of global batches that grow the last counts, and the answer says so") {
    const auto plain = of_model("llama3-8b", on_four_ranks + rotary);
    const auto grows = of_model("llama3-8b", on_four_ranks + rotary + "--rampup-batch-size 16 16 100000");
    REQUIRE(grows.fit);
    CHECK(grows.fit->step == plain.fit->step);
    CHECK(last_of(grows).peak == last_of(plain).peak);
    CHECK(says(grows.assumed, "global batches grow from 16 to 64 samples by 16"));
    CHECK(of_model("llama3-8b", on_four_ranks + rotary + "--rampup-batch-size 15 7 100000").broken.at(0).id == "ramp");
}

TEST_CASE("a launch of delta nets on Megatron Core keeps what the recipe of plans for it keeps") {
    const std::string launch = on_four_ranks + rotary + "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te";
    launch::CheckAsked asked;
    asked.said = launch::read_words(launch::Dialect::megatron_arguments, launch, "--args");
    asked.cluster = "h200-sxm:8";
    asked.model = "qwen3.5-27b-llm";
    const auto own = launch::check(asked, in_order);
    asked.recipe = "megatron-core";
    const auto said = launch::check(asked, in_order);
    REQUIRE(said.fit);
    CHECK(last_of(own).activations == last_of(said).activations);
}

TEST_CASE("a global batch that is rounded down to whole microbatches constructs") {
    const std::string odd = on_four_ranks + rotary + "--global-batch-size 65 ";
    CHECK(of_model("llama3-8b", odd).broken.at(0).id == "global-batch");
    const auto rounded = of_model("llama3-8b", odd + "--decrease-batch-size-if-needed");
    CHECK(rounded.constructs());
    CHECK(rounded.degrees.back() == std::pair<std::string, std::int64_t>("microbatches", 32));
    CHECK_FALSE(of_model("llama3-8b", odd + "--decrease-batch-size-if-needed --micro-batch-size 40").constructs());
}

TEST_CASE("a block of multi-token prediction of Nemotron 3 is attention and experts") {
    const std::string experts = "--moe-token-dispatcher-type alltoall --expert-model-parallel-size 1 ";
    const auto of = [&](const std::string& more) {
        return of_model("nemotron-3-nano-30b-a3b", on_four_ranks + rotary + experts + more, "h200-sxm:32");
    };
    const auto without = of(""), with = of("--mtp-num-layers 1"), twice = of("--mtp-num-layers 2");
    REQUIRE((without.fit && with.fit && twice.fit));
    const auto model = workloads::model("nemotron-3-nano-30b-a3b");
    const auto& network = model.modules[0].architecture;
    REQUIRE(network.layer_pattern.substr(0, 6) == "MEMEM*");
    const std::int64_t block = layer_parameters(network, 5) + layer_parameters(network, 1);
    const std::int64_t each = block + 2 * network.hidden * network.hidden;
    CHECK(last_of(with).weights - last_of(without).weights == Bytes{2 * (each + network.vocab * network.hidden)});
    CHECK(last_of(twice).weights - last_of(with).weights == Bytes{2 * each});
    // Megatron may take the same weights for each of several.
    CHECK(twice.fit->doubts.size() == with.fit->doubts.size() + 1);
}

TEST_CASE("multi-token prediction of blocks of one part each is not emulated, which leaves the answer open") {
    const auto answer = of_model("nemotron-nano-9b-v2", on_four_ranks + rotary + "--mtp-num-layers 1");
    CHECK(answer.constructs());
    CHECK_FALSE(answer.fit);
    CHECK(answer.verdict == launch::Verdict::undecided);
    REQUIRE(answer.open.size() == 1);
    CHECK(answer.open[0].setting == "--mtp-num-layers");
}

TEST_CASE("an engine beside Megatron has its share, and not what the trainer frees meanwhile") {
    const auto of = [](const std::string& more) {
        launch::CheckAsked asked;
        asked.said = launch::read_script(
            "megatron rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B-Instruct --tensor_model_parallel_size 2 "
            "--sequence_parallel true --max_length 512 --global_batch_size 16 --recompute_granularity full "
            "--recompute_method uniform --recompute_num_layers 1 --use_vllm true --vllm_mode " +
                more,
            "launch.sh");
        asked.cluster = "h200-sxm:8";
        return launch::check(asked, in_order);
    };
    const auto peak = [](const launch::Checked& one) { return one.fit->ranks[one.fit->fullest].peak; };
    const auto server = of("server");
    REQUIRE(server.fit);
    CHECK(server.verdict == launch::Verdict::fits);
    const auto awake = of("colocate --vllm_gpu_memory_utilization 0.1");
    const auto memory = workloads::device("h200_sxm").memory;
    CHECK(peak(awake) - peak(server) == Bytes{(memory.count + 9) / 10});
    // So small a share is less than what training needs beside its states.
    CHECK(peak(of("colocate --vllm_gpu_memory_utilization 0.01 --sleep_level 1")) - peak(server) ==
          Bytes{std::int64_t{774} << 20});
    const std::string asleep = "colocate --vllm_gpu_memory_utilization 0.7 --sleep_level 1 ";
    const auto freed = of(asleep + "--offload_model true --offload_optimizer true");
    const auto& rank = server.fit->ranks[0];
    CHECK(peak(of(asleep)) - peak(freed) == rank.weights + rank.gradients + rank.optimizer);
    const auto none = of("colocate --use_vllm false");
    CHECK(none.verdict == launch::Verdict::undecided);
    CHECK(none.open[0].setting == "--use-vllm");
}

TEST_CASE("scores of attention that is not fused are counted where they are worked out again, and else open") {
    const auto of = [](const std::string& more) { return of_model("llama3-8b", on_four_ranks + rotary + more); };
    const std::string unfused = "--attention-backend unfused ";
    const std::string full = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1 ";
    for (const std::string& again : {full, std::string("--recompute-granularity selective ")}) {
        const auto usual = of(again), flash = of(again + "--attention-backend flash"), with = of(again + unfused);
        REQUIRE(with.fit);
        CHECK(last_of(flash).peak == last_of(usual).peak);
        // 32 heads, 4096 x 4096 scores; keys and values of 24 heads more, of 128 numbers in 16 bits.
        CHECK(last_of(with).peak - last_of(usual).peak == Bytes{16LL * 32 * 4096 * 4096 + 4LL * 24 * 128 * 4096});
        CHECK(with.fit->doubts.size() == usual.fit->doubts.size());
    }
    const auto kept = of("--attention-backend local");
    CHECK(kept.verdict == launch::Verdict::undecided);
    REQUIRE(kept.open.size() == 1);
    CHECK(kept.open[0].setting == "--attention-backend");
}

TEST_CASE("layers that uniform recomputation runs again together keep at once what they keep") {
    const auto of = [](const std::string& more) { return of_model("llama3-8b", on_four_ranks + rotary + more); };
    const std::string by = "--recompute-granularity full --recompute-method uniform --recompute-num-layers ";
    const auto one = of(by + "1"), two = of(by + "2"), all = of(by + "8"), beyond = of(by + "32"), none = of("");
    CHECK(last_of(two).peak - last_of(one).peak == last_of(one).transient);
    CHECK(last_of(all).peak - last_of(one).peak == Bytes{7 * last_of(one).transient.count});
    // One microbatch at a time, of which all layers of the rank are kept, as without recomputation.
    CHECK(last_of(all).peak >= last_of(none).peak);
    CHECK(last_of(beyond).peak == last_of(all).peak);
}

namespace {

launch::Checked of_script(const std::string& text, const std::string& model, const std::string& cluster,
                          const std::string& dataset) {
    launch::CheckAsked asked;
    asked.said = launch::read_script(text, "launch.sh");
    asked.cluster = cluster;
    asked.model = model;
    asked.dataset = dataset;
    return launch::check(asked, in_order);
}

const std::string distilled =
    "megatron rlhf --rlhf_type gkd --model Qwen/Qwen2.5-7B-Instruct --tuner_type full --use_vllm false "
    "--tensor_model_parallel_size 4 "
    "--pipeline_model_parallel_size 2 --micro_batch_size 1 --global_batch_size 4 --max_length 1536 "
    "--max_completion_length 512 ";

}  // namespace

// A step has 4 microbatches of 1536 positions on one replica.
TEST_CASE("a teacher's logits of all microbatches of a step lie on the last rank, and its weights on all") {
    const auto of = [](const std::string& more) {
        return of_script(distilled + more, "qwen2.5-7b", "h200-sxm:8", "constant-1536");
    };
    const auto itself = of(""), of_itself = of("--teacher_model Qwen/Qwen2.5-7B"),
               served = of("--teacher_model_server u --gkd_logits_topk 64");
    REQUIRE(itself.fit);
    REQUIRE(of_itself.fit);
    REQUIRE(served.fit);
    const std::int64_t vocabulary = workloads::model("qwen2.5-7b").modules[0].architecture.vocab;
    const auto few = of("--gkd_logits_topk 64");
    REQUIRE(few.fit);
    CHECK(last_of(itself).buffers - last_of(few).buffers == Bytes{4 * 1536 * (2 * vocabulary / 4 - 12 * 64)});
    // Comparing all of them keeps more of the logits of the microbatch that is trained, too.
    CHECK(last_of(itself).peak - last_of(few).peak > last_of(itself).buffers - last_of(few).buffers);
    CHECK(itself.fit->ranks[0].peak == few.fit->ranks[0].peak);
    CHECK(of_itself.fit->ranks[0].weights == Bytes{2 * itself.fit->ranks[0].weights.count});
    CHECK(served.fit->ranks[0].weights == itself.fit->ranks[0].weights);
    const auto larger = of("--teacher_model Qwen/Qwen2.5-72B-Instruct");
    REQUIRE(larger.fit);
    CHECK(larger.fit->ranks[0].weights > of_itself.fit->ranks[0].weights);
    CHECK(says(larger.assumed, "the teacher's weights are those of qwen2.5-72b"));
    const auto twice = of("--gkd_logits_topk 64 --steps_per_generation 3");
    REQUIRE(twice.fit);
    CHECK(last_of(twice).peak - last_of(few).peak == Bytes{4 * 1536 * 12 * 64 * 2});
    const auto by_batch = of("--gkd_logits_topk 64 --generation_batch_size 12");  // 3 steps of 4 samples
    REQUIRE(by_batch.fit);
    CHECK(last_of(by_batch).peak == last_of(twice).peak);
    const auto unsaid = of("--teacher_model_server u");
    REQUIRE(!unsaid.constructs());
    CHECK(unsaid.broken.front().id == "teacher-server");
}

TEST_CASE("attention that keeps its scores is advised to be fused, where that makes it fit") {
    // 28 heads over 16384 positions: 16 bytes of a score are 120 GB in the layer that is worked out again.
    const auto checked = of_model(
        "qwen2.5-7b",
        "--seq-length 16384 --micro-batch-size 1 --global-batch-size 8 --bf16 --hidden-dropout 0 "
        "--use-distributed-optimizer --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 "
        "--position-embedding-type rope --attention-backend unfused",
        "h200-sxm:8");
    REQUIRE(checked.fit);
    CHECK_FALSE(checked.fit->fits());
    CHECK(std::any_of(checked.changes.begin(), checked.changes.end(), [](const launch::Change& one) {
        return one.say == "--attention-backend flash" && one.fit.fits();
    }));
}

TEST_CASE("what Megatron-SWIFT takes is that of its last version, and what others take may turn the verdict") {
    const auto check = [](const std::string& flags) {
        launch::CheckAsked asked;
        asked.said = launch::read_script(
            "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-8B --max_length 4096 "
            "--global_batch_size 16 --tensor_model_parallel_size 2 " +
                flags + "\n",
            "a.sh");
        asked.cluster = "h100-sxm:8";
        asked.model = "qwen3-8b";
        return launch::check(asked, in_order);
    };
    const auto peak = [](const launch::Checked& checked) { return checked.fit->ranks.front().peak; };
    const auto unsaid = check(""), engines = check("--cross_entropy_fusion_impl te");
    REQUIRE(unsaid.fit);
    REQUIRE(engines.fit);
    CHECK(peak(unsaid) == peak(check("--cross_entropy_fusion_impl native")));
    CHECK(peak(unsaid) > peak(engines));
    const auto loss = [](const launch::Checked& checked) {
        std::int64_t most = 0;
        for (const auto& one : checked.fit->doubts)
            if (one.setting == "--cross-entropy-fusion-impl") most = one.most.value_or(Bytes{}).count;
        return most;
    };
    // Twice the 9 bytes of 4096 positions and 151,936 entries, of which each GPU has a half.
    CHECK(loss(unsaid) == std::int64_t{2} * 9 * 2048 * 151'936);
    CHECK(loss(engines) == 0);
    // It has no train_type since 4.1, and passes over it where it is told to.
    CHECK(check("--train_type lora").verdict == launch::Verdict::fits);
    CHECK(check("--tuner_type lora --ignore_args_error true").verdict == launch::Verdict::fits);
    const auto passes = check("--train_type lora --ignore_args_error true");
    CHECK(passes.verdict == launch::Verdict::undecided);
    CHECK(passes.open.at(0).setting == "--ignore-args-error");
    CHECK(check("--train_type lora --ignore_args_error false").verdict == launch::Verdict::fits);
}

TEST_CASE("adapters of Megatron-Bridge lie beside layers of encoders that have the names of its own") {
    const auto has_in_front = [](const std::string& model, const std::string& targets) {
        launch::CheckAsked asked;
        asked.said = launch::read_words(launch::Dialect::bridge_overrides,
                                        "model.seq_length=4096 train.micro_batch_size=1 train.global_batch_size=64 "
                                        "model.bf16=true peft.dim=8 " +
                                            targets,
                                        "--args");
        const auto named = launch::named_model(model, asked.said);
        const auto l = launch::settled(launch::with_model(launch::read_megatron(asked.said), named));
        const launch::FitAsked of{.cluster = "h100-sxm:8", .gpus = 8, .model = named, .dataset = "vlm-mix"};
        const workloads::Model made = *launch::run_of(l, of).options.workload.model_read;
        CHECK(made.modules.back().adapters);
        return made.modules.front().adapters.has_value();
    };
    // Its own encoders, of Megatron Core's layers.
    CHECK(has_in_front("qwen3-vl-8b", ""));
    CHECK(has_in_front("qwen3-vl-8b", "peft.target_modules=[linear_qkv]"));
    CHECK(has_in_front("qwen3-vl-8b", "peft.target_modules=['*.layers.*.linear_qkv']"));
    CHECK(has_in_front("qwen3-vl-8b", "peft.target_modules=['*vision_model*.linear_proj','*language*.linear_qkv']"));
    CHECK_FALSE(has_in_front("qwen3-vl-8b", "peft.target_modules=['*language_model.*.linear_qkv']"));
    // Those of transformers, whose layers are called otherwise.
    CHECK_FALSE(has_in_front("qwen2.5-vl-7b", ""));
    CHECK_FALSE(has_in_front("qwen2.5-vl-7b", "peft.target_modules=[linear_qkv,linear_fc1]"));
    CHECK_FALSE(has_in_front("qwen2.5-vl-7b", "peft.target_modules=['*.layers.*.linear_qkv']"));
}

TEST_CASE("blocks that Megatron-Bridge has of its own keep their norms' copies and capped logits") {
    const auto run = [](launch::Dialect dialect, const std::string& text, workloads::Model model) {
        const auto said = launch::read_words(dialect, text, "--args");
        const auto l = launch::settled(launch::with_model(launch::read_megatron(said), model));
        return launch::run_without_batch(l, {.cluster = "h100-sxm:8", .gpus = 8, .model = std::move(model)});
    };
    const auto in_bridge = [&](const workloads::Model& model) {
        return run(launch::Dialect::bridge_overrides,
                   "model.seq_length=4096 train.micro_batch_size=1 train.global_batch_size=64 model.bf16=true", model);
    };
    const auto kept = [](const launch::Run& of) { return of.options.workload.recipe_read->kept; };
    const auto experts = workloads::model("gemma-4-26b-a4b"), dense = workloads::model("gemma-4-31b");
    auto another = experts;
    another.family = "another";
    const auto own = in_bridge(experts), plain = in_bridge(another);
    // Six norms of 12 bytes, counted in frameworks/own_blocks.cpp; the hyperbolic tangent in 16 bits.
    CHECK(kept(own).norms == 72);
    CHECK(kept(own).logit - kept(plain).logit == 2);
    CHECK(kept(in_bridge(dense)).norms == 44);
    CHECK(kept(in_bridge(workloads::model("gemma-3-4b"))).norms == 4);
    CHECK(kept(plain).norms == 0);
    CHECK(says(own.assumed, "norms keep 72 bytes of a position and column more"));
    CHECK_FALSE(says(plain.assumed, "norms keep"));
    CHECK(kept(run(launch::Dialect::megatron_arguments, step_of_4096 + rotary, experts)).norms == 0);
    // Frozen, five norms keep no normed values, and the router not what it scales.
    const std::string step = "model.seq_length=4096 train.micro_batch_size=1 train.global_batch_size=64 ";
    const auto frozen = [&](const workloads::Model& model) {
        return kept(
            run(launch::Dialect::bridge_overrides, step + "model.bf16=true model.freeze_language_model=true", model));
    };
    CHECK(frozen(experts).norms == 72 - 5 * 4 - 2);
    CHECK(frozen(dense).norms == 44 - 4 * 4);
    // Attention without experts is Megatron Core's own.
    const auto keeps = [](const launch::Run& of) {
        return std::any_of(of.doubts.begin(), of.doubts.end(),
                           [](const auto& doubt) { return doubt.phrase.find("keeps scores") != std::string::npos; });
    };
    CHECK(keeps(in_bridge(dense)));
    CHECK_FALSE(keeps(own));
}
