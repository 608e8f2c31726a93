// Launches of sharded trainers: what their words and files say, what copies share out, and what is refused.
#include "pipeweaver/launch/sharded.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/frameworks/memory_setting.hpp"
#include "pipeweaver/launch/fit.hpp"
#include "pipeweaver/launch/megatron.hpp"
#include "pipeweaver/launch/rules.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace pipeweaver;
using launch::ShardedLaunch;

namespace {

ShardedLaunch read(const std::string& text, const launch::Variables& given = {}) {
    return launch::read_sharded(launch::read_script(text, "launch.sh", std::nullopt, given));
}

const std::string factory = "llamafactory-cli train --model_name_or_path M --stage sft --bf16 true ";
const std::string swift = "swift sft --model M --dataset d.jsonl ";
const std::string script = "deepspeed --num_gpus 8 my/train.py --model_name_or_path M --bf16 True --max_length 1024 ";

std::string entry_of(const std::string& text) {
    const auto said = launch::read_script(text, "launch.sh");
    return said.entry == nullptr ? std::string() : std::string(said.entry->name);
}

// Of the text model of 7 billion parameters on 8 GPUs.
launch::Run run(const std::string& text) {
    const auto model = workloads::model("qwen2.5-7b");
    return launch::run_of(launch::with_model(read(text), model), {.cluster = "a100-sxm:8", .gpus = 8, .model = model});
}

emulator::Recipe recipe(const std::string& text) { return *run(text).options.workload.recipe_read; }

std::vector<std::string> broken(const std::string& text, const char* framework, std::int64_t gpus = 8) {
    std::vector<std::string> ids;
    const auto of_model = launch::with_model(read(text), workloads::model("qwen2.5-7b"));  // 4 key and value heads
    for (const auto& rule : launch::broken_rules(of_model, gpus, launch::framework_called(framework)))
        ids.emplace_back(rule.id);
    return ids;
}

}  // namespace

TEST_CASE("a sharded trainer is known by its program, anybody's script by the flags of Hugging Face's Trainer") {
    CHECK(entry_of(factory) == "LLaMA-Factory");
    CHECK(entry_of("torchrun src/train.py --finetuning_type full --bf16 true") == "LLaMA-Factory");
    CHECK(entry_of("NPROC_PER_NODE=8 " + swift + "--max_length 2048") == "ms-swift on DeepSpeed or FSDP");
    CHECK(entry_of("megatron sft --model M --tensor_model_parallel_size 2") == "ms-swift");
    CHECK(entry_of("python -m torch.distributed.run --nproc_per_node=8 /a/swift/cli/_megatron/sft.py --model M "
                   "--tensor_model_parallel_size 2") == "ms-swift");
    CHECK(entry_of("torchrun --nproc_per_node 8 -m swift.cli._megatron.sft --tensor_model_parallel_size 2") ==
          "ms-swift");
    CHECK(entry_of("torchrun -m swift.cli.sft --model M --max_length 2048") == "ms-swift on DeepSpeed or FSDP");
    CHECK(entry_of("bash train.sh tasks/train_vlm.py --train.micro_batch_size 2") == "VeOmni");
    CHECK(entry_of("torchrun examples/llm_finetune/finetune.py --distributed.tp_size 2") == "NeMo AutoModel");
    CHECK(entry_of("torchrun qwenvl/train/train_qwen.py --bf16") == "Qwen-VL's finetuning");
    CHECK(entry_of("srun python -u internvl/train/internvl_chat_finetune.py --bf16 True") == "InternVL's finetuning");
    const std::string series =
        "deepspeed src/train/train_sft.py --model_id M --bf16 True --optim sgd --deepspeed z.json";
    CHECK(entry_of(series + " --freeze_merger False") == "Qwen-VL-Series-Finetune");
    CHECK(entry_of(series) == "Hugging Face's Trainer");
    CHECK(entry_of(script) == "Hugging Face's Trainer");
    CHECK(entry_of("torchrun src/train.py --deepspeed z.json --bf16 True --optim sgd") == "Hugging Face's Trainer");
    CHECK_THROWS_AS((void)launch::read_script("python my/train.py --optim sgd", "launch.sh"), Error);
}

TEST_CASE("files that the script writes are read by their names") {
    const std::string head =
        "B=2\ncat > cfg.yaml <<EOF\nmodel_name_or_path: M\nstage: sft\nfinetuning_type: full\n"
        "per_device_train_batch_size: ${B}\ncutoff_len: 4096\ndeepspeed: ds.json\nEOF\n"
        "cat <<'EOF' > ds.json\n{\"zero_optimization\": {\"stage\": 2}}\nEOF\n";
    const ShardedLaunch l = read(head + "llamafactory-cli train cfg.yaml\n");
    CHECK(l.micro_batch == 2);
    CHECK(l.length == 4096);
    CHECK(l.zero == 2);
    CHECK(l.missing.empty());
}

TEST_CASE("a trainer's own defaults count where nobody says others") {
    const ShardedLaunch l = read(factory);
    CHECK(l.micro_batch == 8);
    CHECK(l.length == 2048);
    CHECK(l.tuner == "lora");
    CHECK(l.lora_rank == 8);
    CHECK(l.freeze_tower);
    CHECK(l.freeze_projector);
    CHECK(l.recompute == true);
    CHECK(l.zero_stage() == 0);
    CHECK(l.packs == false);
    CHECK(read("llamafactory-cli train --model_name_or_path M --stage pt").packs == true);

    const ShardedLaunch s = read(swift + "--tuner_type full");
    CHECK(s.micro_batch == 1);
    CHECK_FALSE(s.length.has_value());
    CHECK(s.bf16);
    CHECK(s.recompute == true);

    const ShardedLaunch h = read(script);
    CHECK(h.recompute == false);
    CHECK(h.tuner == "full");
}

TEST_CASE("dashes and underscores, switches and values say the same") {
    CHECK(read(swift + "--max-length 4096 --lora-rank 16").length == 4096);
    CHECK(read(swift + "--lora_rank=16").lora_rank == 16);
    CHECK(read(factory + "--disable_gradient_checkpointing").recompute == false);
    CHECK(read(factory + "--disable_gradient_checkpointing false").recompute == true);
    CHECK(read(script + "--packing").packs == true);
    CHECK(read(factory + "--flash_attn disabled").attention == "eager");
    CHECK(read(factory + "--lora_target q_proj,v_proj").lora_targets == std::vector<std::string>{"q_proj", "v_proj"});
    CHECK(read(swift + "--target_modules q_proj v_proj 2>&1").lora_targets.size() == 2);
    CHECK_THROWS_AS(read(swift + "--max_length long"), Error);
}

TEST_CASE("files of DeepSpeed are read, taken by a name that is known, or missing") {
    CHECK(read(swift + "--deepspeed zero3_offload").zero_stage() == 3);
    CHECK(read(swift + "--deepspeed zero3_offload").offload_optimizer == "cpu");
    CHECK(read(swift + "--deepspeed zero2").reduce_bucket == 200'000'000);
    const ShardedLaunch shipped = read(factory + "--deepspeed examples/deepspeed/ds_z2_config.json");
    CHECK(shipped.zero_stage() == 2);
    CHECK(shipped.notes.size() == 1);
    const ShardedLaunch missing = read(script + "--deepspeed my_own.json");
    REQUIRE(missing.missing.size() == 1);
    CHECK(missing.missing.front().file == "my_own.json");
    CHECK(read(script + "--deepspeed zero3").missing.size() == 1);  // ms-swift's name alone
    const ShardedLaunch inline_json =
        read(swift + "--deepspeed '{\"zero_optimization\": {\"stage\": 1, \"reduce_bucket_size\": 5e8}}'");
    CHECK(inline_json.zero_stage() == 1);
    CHECK(inline_json.reduce_bucket == 500'000'000);
}

TEST_CASE("FSDP shares out weights, or gradients and states alone") {
    CHECK(read(script + "--fsdp \"full_shard auto_wrap\"").zero_stage() == 3);
    CHECK(read(script + "--fsdp shard_grad_op").zero_stage() == 2);
    CHECK(read(swift + "--fsdp fsdp2").zero_stage() == 3);
    CHECK(read("accelerate launch --use_fsdp --fsdp_sharding_strategy SHARD_GRAD_OP my/train.py --bf16 True "
               "--model_name_or_path M --optim sgd")
              .zero_stage() == 2);
    CHECK(read("bash train.sh tasks/train_vlm.py --train.data_parallel_mode ddp").zero_stage() == 0);
}

// transformers 5.0 training_args.py: fp16, else bf16, else what `accelerate launch` has.
TEST_CASE("the trainer's own precision counts more than that of `accelerate launch`") {
    const auto with = [](const std::string& launcher, const std::string& trainer) {
        return read("accelerate launch --use_fsdp --mixed_precision " + launcher +
                    " my/train.py --model_name_or_path M --optim adamw_torch " + trainer);
    };
    CHECK(with("bf16", "").bf16);
    CHECK(with("bf16", "--fp16 True").fp16);
    CHECK_FALSE(with("bf16", "--fp16 True").bf16);
    CHECK(with("no", "--bf16 True").bf16);
    CHECK(with("fp16", "--bf16 True").bf16);
    CHECK_FALSE(with("no", "").bf16);
}

TEST_CASE("variables of the environment say settings, or make another trainer of it") {
    CHECK(read("MAX_PIXELS=501760 " + swift + "--max_length 2048").image_pixels == 501'760);
    CHECK_THROWS_AS(read("USE_MEGATRON_BRIDGE=true " + factory), Error);
    CHECK(read("USE_V1=0 " + factory).tuner == "lora");
    CHECK(read("USE_V1=1 " + factory).tuner == "full");
    CHECK(entry_of("USE_V1=1 " + factory) == "LLaMA-Factory v1");
}

// Its sources are beside the rows.
TEST_CASE("LLaMA-Factory's v1 trains all in 32 bits, shares out what it is told, and has its stage of a command") {
    const std::string file = "--model Qwen/Qwen3-4B --dist_config.name fsdp2 --micro_batch_size 2 ";
    const ShardedLaunch l = read("llamafactory-cli sft " + file);
    CHECK(l.stage == "sft");
    CHECK(l.zero_stage() == 3);
    CHECK(l.dtype == "float32");
    CHECK(l.bf16);
    CHECK(l.masters);
    CHECK(l.recompute == true);
    CHECK(l.length == 2048);
    CHECK(l.micro_batch == 2);
    CHECK(l.packs == false);
    CHECK(read("llamafactory-cli sft " + file + "--batching_strategy dynamic_padding_free").packs == true);
    CHECK(read("llamafactory-cli sft " + file + "--dist_config.reshard_after_forward false").zero_stage() == 2);
    CHECK(read("USE_V1=1 llamafactory-cli train --model M --micro_batch_size 1").zero_stage() == 0);
    CHECK(read("llamafactory-cli dpo " + file).stage == "dpo");
    const ShardedLaunch lora = read("llamafactory-cli sft " + file + "--peft_config.name lora --peft_config.r 16");
    CHECK(lora.dtype == "bfloat16");
    CHECK(lora.lora_rank == 16);
    CHECK(read("llamafactory-cli sft " + file + "--peft_config.name lora --bf16 false").dtype == "float32");
}

TEST_CASE("LLaMA-Factory's v1 mixes precisions in FSDP2 alone, or as DeepSpeed's file says") {
    const std::string words = "llamafactory-cli sft --model Qwen/Qwen3-4B ";
    const auto weight = [&](const std::string& more) { return recipe(words + more).state.weight; };
    CHECK(weight("--dist_config.name fsdp2") == 2);
    CHECK(weight("--dist_config.name fsdp2 --bf16 false") == 4);
    CHECK(weight("") == 4);  // DistributedDataParallel
    CHECK(weight("--peft_config.name lora") == 2);
    const std::string deepspeed = "--dist_config.name deepspeed --dist_config.config_file ";
    CHECK(weight(deepspeed + "'{\"zero_optimization\": {\"stage\": 2}}'") == 2);
    CHECK(weight(deepspeed + "'{\"bf16\": {\"enabled\": false}}'") == 4);
    CHECK(weight(deepspeed + "'{\"fp16\": {\"enabled\": false}}'") == 4);
    CHECK(broken(words + deepspeed + "'{\"train_micro_batch_size_per_gpu\": 4}'", "llama-factory").empty());
}

// 14.8 x 10^9 parameters of 4 bytes are less than the 80 GiB of a GPU, 32.8 x 10^9 more.
TEST_CASE("a model that every GPU loads whole before it is shared out is open where none holds it") {
    const auto says = [](const std::string& more, const char* model) {
        const auto named = workloads::find_model(model);
        const ShardedLaunch l =
            launch::with_model(read("llamafactory-cli sft --dist_config.name fsdp2 " + more), named);
        const auto doubts = launch::run_of(l, {.cluster = "a100-sxm:8", .gpus = 8, .model = named}).doubts;
        return std::any_of(doubts.begin(), doubts.end(),
                           [](const auto& one) { return one.setting == "--init_config.name"; });
    };
    CHECK(says("", "qwen3-32b"));
    CHECK_FALSE(says("--init_config.name init_on_meta", "qwen3-32b"));
    CHECK_FALSE(says("--peft_config.name lora", "qwen3-32b"));
    CHECK_FALSE(says("", "qwen3-14b"));
}

TEST_CASE("a tuner that is neither LoRA nor full is open both ways, one that trains some layers downwards") {
    using frameworks::Effect;
    const auto effect = [](const std::string& text, const std::string& setting) -> std::optional<Effect> {
        for (const auto& one : run(text).doubts)
            if (one.setting == setting) return one.effect;
        return std::nullopt;
    };
    for (const std::string tuner : {"boft", "bone", "reft", "adapter", "llamapro", "longlora"}) {
        CAPTURE(tuner);
        CHECK(effect(swift + "--max_length 512 --tuner_type " + tuner, "--tuner_type") == Effect::either);
    }
    CHECK_FALSE(effect(swift + "--max_length 512 --tuner_type full", "--tuner_type"));
    CHECK(effect("llamafactory-cli train --bf16 true --finetuning_type freeze", "--finetuning_type") == Effect::less);
}

TEST_CASE("AdaLoRA's adapters are LoRA's of its first rank, and as many averages") {
    const auto most_of = [](const std::string& more) -> std::optional<Bytes> {
        for (const auto& one : run(swift + "--max_length 512 --tuner_type " + more).doubts)
            if (one.setting == "--tuner_type") return one.most;
        return std::nullopt;
    };
    CHECK_FALSE(most_of("lora --lora_rank 12"));
    REQUIRE(most_of("adalora"));
    CHECK(most_of("adalora --adalora_init_r 24")->count == 2 * most_of("adalora")->count);
    const auto l = read(swift + "--tuner_type adalora");
    CHECK(l.has_adapters());
    CHECK(l.lora_rank == 12);
}

TEST_CASE("what is trained whole beside adapters is bounded where it is the vocabulary's") {
    const auto most_of = [](const std::string& text, const std::string& setting) {
        std::optional<std::optional<Bytes>> most;
        for (const auto& one : run(text).doubts)
            if (one.setting == setting) most = one.most;
        return most;
    };
    const std::string adapters = factory + "--finetuning_type lora --additional_target ";
    const auto head = most_of(adapters + "lm_head", "--additional_target");
    const auto both = most_of(adapters + "embed_tokens,lm_head", "--additional_target");
    REQUIRE((head && *head && both && *both));
    CHECK((*both)->count == 2 * (*head)->count);
    for (const std::string more : {"score", "lm_head score"}) {
        CAPTURE(more);
        const auto other = most_of(swift + "--max_length 512 --modules_to_save " + more, "--modules_to_save");
        REQUIRE(other.has_value());
        CHECK_FALSE(other->has_value());
    }
    // Of a model with a tower, or with an embedding in each layer, all embeddings are others, too.
    for (const auto& one : {std::pair{"qwen2.5-7b", 0}, std::pair{"qwen2.5-vl-7b", 0}, std::pair{"qwen2.5-7b", 256}}) {
        CAPTURE(one.first);
        auto model = workloads::find_model(one.first);
        model.modules[model.backbone()].architecture.layer_embedding = one.second;
        const auto doubts =
            launch::run_of(launch::with_model(read(swift + "--max_length 512 --modules_to_save all-embedding"), model),
                           {.cluster = "a100-sxm:8", .gpus = 8, .model = model, .dataset = "constant-512"})
                .doubts;
        const auto whole = std::find_if(doubts.begin(), doubts.end(), [](const launch::Doubt& doubt) {
            return doubt.setting == "--modules_to_save";
        });
        REQUIRE(whole != doubts.end());
        CHECK(whole->most.has_value() == (model.modules.size() == 1 && one.second == 0));
    }
    CHECK_FALSE(most_of(swift + "--max_length 512 --tuner_type full --modules_to_save lm_head", "--modules_to_save"));
}

// hiyouga/LLaMA-Factory ff6d4d12 examples/megatron/qwen2_vl_full.yaml has these names.
TEST_CASE("USE_MCA=1 makes a trainer of Megatron Core of it, by names of both") {
    const std::string more =
        "--tensor_model_parallel_size 4 --sequence_parallel true --pipeline_model_parallel_size 2 "
        "--use_distributed_optimizer true --per_device_train_batch_size 1 --gradient_accumulation_steps 6 "
        "--cutoff_len 4096 --recompute_granularity full --finetuning_type lora --freeze_vision_tower false ";
    const auto said = launch::read_script("USE_MCA=1 " + factory + more, "launch.sh");
    REQUIRE(said.entry != nullptr);
    CHECK(said.entry->name == "LLaMA-Factory on Megatron Core");
    CHECK(said.dialect == launch::Dialect::megatron_arguments);
    CHECK(said.named_model == "M");
    const launch::MegatronLaunch l = launch::read_megatron(said);
    CHECK(l.tp == 4);
    CHECK(l.pp == 2);
    CHECK(l.seq_length == 4096);
    CHECK(launch::microbatches_of(l, 16) == 6);
    CHECK(l.recompute_method == "uniform");
    CHECK(l.recompute_layers == 1);
    CHECK(l.learns.empty());
    CHECK_FALSE(l.freeze_vit);
    CHECK(l.freeze_aligner);
    CHECK(l.tuner.empty());  // it trains all that is not frozen
    CHECK(l.distributed_optimizer);
    CHECK(launch::read_megatron(launch::read_script("USE_MCA=true " + factory, "launch.sh")).micro_batch == 8);
    const auto frozen = [](const std::string& stage) {
        const std::string command = "USE_MCA=1 llamafactory-cli train --model_name_or_path M --bf16 true " + stage;
        return launch::read_megatron(launch::read_script(command, "launch.sh")).freeze_vit;
    };
    CHECK(frozen(""));
    CHECK(frozen("--stage dpo"));
    CHECK_FALSE(frozen("--stage pt"));  // src/llamafactory/train/mca/workflow.py run_pt freezes nothing
    CHECK(entry_of("USE_MCA=0 " + factory) == "LLaMA-Factory");
}

// alibaba/ROLL 8eb27cc mcore_adapter/examples/train/run_sft_train.sh has these names.
TEST_CASE("a flag makes mcore_adapter's example a trainer of Megatron Core") {
    const std::string words =
        "torchrun --nproc_per_node=8 train/run_train.py --do_train --stage=sft --cutoff_len=8192 --template=qwen3 "
        "--model_name_or_path=Qwen/Qwen3-8B --output_dir=./tmp/ --per_device_train_batch_size=1 "
        "--gradient_accumulation_steps=4 --learning_rate=2e-5 --logging_steps=1 --save_steps=50 --bf16 "
        "--tensor_model_parallel_size 2 --sequence_parallel --use_distributed_optimizer ";
    const auto said = launch::read_script(words + "--finetuning_type=full --use_mca", "launch.sh");
    REQUIRE(said.entry != nullptr);
    CHECK(said.entry->name == "mcore_adapter's examples");
    CHECK(said.named_model == "Qwen/Qwen3-8B");
    const launch::MegatronLaunch l = launch::read_megatron(said);
    CHECK(l.tp == 2);
    CHECK(l.seq_length == 8192);
    CHECK(l.tuner == "full");
    CHECK(launch::read_megatron(launch::read_script(words + "--use_mca=True", "launch.sh")).tuner == "lora");
    for (const char* off : {"--use_mca=False", "--use_mca no", "--use_mca 0"})
        CHECK(entry_of(words + off) == "Hugging Face's Trainer");
    CHECK(entry_of(words) == "Hugging Face's Trainer");
}

TEST_CASE("fewer pixels are fewer tokens of a longest side, and none fewer of images that are filled up again") {
    auto model = workloads::model("qwen2.5-vl-7b");
    const auto image_of = [&](workloads::ImageRule rule) {
        rule.patch = 14;
        rule.merge = 2;
        model.image = rule;
        const auto run =
            launch::run_of(launch::with_model(read("MAX_PIXELS=501760 " + swift + "--max_length 2048"), model),
                           {.cluster = "a100-sxm:8", .gpus = 8, .model = model, .dataset = "vlm-mix"});
        return run.options.workload.model_read->image;
    };
    using workloads::ImageResize;
    const auto side = image_of({.max_tokens = 55 * 55, .resize = ImageResize::side, .longest_side = 1540});
    CHECK((side.resize == ImageResize::round && side.max_tokens == 640));
    const auto fill = image_of({.max_tokens = 700, .resize = ImageResize::fill});
    CHECK((fill.resize == ImageResize::fill && fill.max_tokens == 700));
    CHECK(image_of({.max_tokens = 700, .resize = ImageResize::pad}).max_tokens == 640);
}

TEST_CASE("DeepSpeed keeps 32-bit masters beside 16-bit weights, and PyTorch what the trainer casts") {
    using Bytes3 = std::vector<std::int64_t>;
    const auto state = [](const std::string& text) {
        const auto s = recipe(text).state;
        return Bytes3{s.weight, s.gradient, s.optimizer, s.whole};
    };
    const std::string full = factory + "--finetuning_type full ";
    CHECK(state(full + "--deepspeed ds_z3_config.json") == Bytes3{2, 2, 12, 0});
    CHECK(state(full + "--deepspeed ds_z2_offload_config.json") == Bytes3{2, 0, 0, 0});
    CHECK(state(full) == Bytes3{2, 4, 10, 4});
    CHECK(state(full + "--pure_bf16 true") == Bytes3{2, 2, 4, 2});
    CHECK(state(full + "--deepspeed ds_z3_config.json --optim adamw_bnb_8bit") == Bytes3{2, 2, 6, 0});
    CHECK(state(swift + "--max_length 2048 --tuner_type full") == Bytes3{2, 2, 4, 2});
    CHECK(state(script + "--fsdp full_shard") == Bytes3{2, 4, 10, 0});
    CHECK(state(script + "--fsdp full_shard --gradient_accumulation_steps 4") == Bytes3{2, 4, 10, 2});
}

TEST_CASE("where FSDP keeps whole weights their shards lie beside them, as wide") {
    CHECK(recipe(script + "--fsdp shard_grad_op").state.apart == 2);
    CHECK(
        recipe("torchrun my/train.py --fsdp shard_grad_op --model_name_or_path M --max_length 1024 --optim adamw_torch")
            .state.apart == 4);
    CHECK(recipe(factory + "--finetuning_type full --deepspeed ds_z2_config.json").state.apart == 0);
    CHECK(recipe(factory + "--finetuning_type full").state.apart == 0);
}

TEST_CASE("an engine that sleeps keeps what was seen of one, of several GPUs more") {
    const std::string words =
        "swift rlhf --rlhf_type grpo --model M --max_length 1024 --use_vllm true --vllm_mode colocate ";
    CHECK(run(words).besides.asleep == Bytes{});
    CHECK(run(words + "--sleep_level 1").besides.asleep == Bytes{774 << 20});
    CHECK(run(words + "--sleep_level 1 --vllm_tensor_parallel_size 2").besides.asleep ==
          Bytes{std::int64_t{7392} << 20});
}

TEST_CASE("a teacher is followed in Megatron-SWIFT alone") {
    const auto doubts = run("swift rlhf --rlhf_type gkd --model M --max_length 1024 --use_vllm true").doubts;
    CHECK(std::any_of(doubts.begin(), doubts.end(), [](const launch::Doubt& one) {
        return one.phrase == "what 'gkd' holds beside the model" && one.effect == frameworks::Effect::more;
    }));
}

TEST_CASE("a copy that the launch and the model's file both say is counted once") {
    auto model = workloads::model("qwen2.5-7b");
    model.reference = true;
    const auto of = [&](const std::string& text) {
        return launch::run_of(launch::with_model(read(text), model),
                              {.cluster = "a100-sxm:8", .gpus = 8, .model = model});
    };
    const auto is_in_model = [](const launch::Run& one) { return one.options.workload.model_read->reference; };
    const auto dpo = of("swift rlhf --rlhf_type dpo --model M --max_length 1024 --train_type full");
    CHECK(dpo.besides.reference > Bytes{});
    CHECK_FALSE(is_in_model(dpo));
    CHECK(std::any_of(dpo.assumed.begin(), dpo.assumed.end(), [](const std::string& one) {
        return one.starts_with("'dpo' says whether a copy lies beside the model");
    }));
    // A script that says no stage may train in any: the file counts.
    const auto any = of(script + "--fsdp full_shard");
    CHECK(any.besides.reference == Bytes{});
    CHECK(is_in_model(any));
}

// ByteDance-Seed/VeOmni d9774494 veomni/trainer/text_dpo_trainer.py
TEST_CASE("VeOmni's pairs have a copy of the model, beside adapters, too, and keep no logits") {
    const std::string veomni = "bash train.sh tasks/train_text_dpo.py --model.model_path M --data.max_seq_len 1024 ";
    const std::string swifts = "swift rlhf --rlhf_type dpo --model M --max_length 1024 --train_type ";
    CHECK(entry_of(veomni) == "VeOmni");
    CHECK(read(veomni).stage == "dpo");
    CHECK(read(veomni).tokens() == 2 * 1024);
    const Bytes copy = run(veomni).besides.reference;
    CHECK(copy > Bytes{});
    CHECK(run(veomni + "--model.lora_config.rank 8").besides.reference == copy);
    CHECK(run(swifts + "lora").besides.reference == Bytes{});
    CHECK(recipe(veomni).kept.logit == 0);
    CHECK(recipe(swifts + "full").kept.logit > 0);
}

TEST_CASE("plans for FSDP2 hold what a launch of Hugging Face's trainers does, of several microbatches") {
    auto planned = emulator::find_recipe("accelerate-fsdp2");
    std::swap(planned.state.whole, planned.state.summed);
    const auto launched = recipe(script + "--fsdp full_shard --gradient_accumulation_steps 4");
    CHECK(planned.state == launched.state);
    CHECK(planned.kept == launched.kept);
    CHECK(planned.execution == launched.execution);
    CHECK(planned.zero == launched.zero);
}

TEST_CASE("plans for DeepSpeed hold what a launch of Hugging Face's trainers does, buckets and the update too") {
    const std::string full = factory + "--finetuning_type full --optim adamw_torch_fused --deepspeed ";
    const auto file = [](int zero) {
        return R"('{"zero_optimization": {"stage": )" + std::to_string(zero) +
               R"(, "overlap_comm": true, "reduce_bucket_size": 200000000, "sub_group_size": 1000000000000}}')";
    };
    const auto planned = emulator::find_recipe("deepspeed-zero");
    for (const int zero : {1, 2, 3}) {
        CAPTURE(zero);
        const auto launched = run(full + file(zero));
        auto of = *launched.options.workload.recipe_read;
        CHECK(launched.besides.buckets == planned.beside);
        CHECK(launched.besides.gathered == (zero == 3 ? planned.gathered : Bytes{}));
        CHECK(launched.besides.update == planned.state.update);
        of.state.update = planned.state.update;
        CHECK(planned.state == of.state);
        CHECK(planned.kept == of.kept);
        CHECK(planned.execution == of.execution);
    }
}

TEST_CASE("what the update takes beside states is of stage 3 no more than a group of parameters") {
    const auto besides = [](const std::string& text) {
        return run(factory + "--finetuning_type full " + text).besides;
    };
    CHECK(besides("--deepspeed ds_z2_config.json").update == 8);
    CHECK(besides("--deepspeed ds_z2_config.json --optim adamw_torch_fused").update == 4);
    CHECK(besides("--deepspeed ds_z2_config.json").most_update == Bytes{});
    CHECK(besides("--deepspeed ds_z3_config.json").most_update == Bytes{8'000'000'000});
    CHECK(besides("--deepspeed ds_z2_offload_config.json").update == 0);
    CHECK(besides("--deepspeed ds_z2_config.json").buckets == Bytes{1'000'000'000});
}

TEST_CASE("adapters and frozen parts are each trainer's") {
    const auto trained = [](const std::string& text) {
        const auto vision = workloads::model("qwen2.5-vl-7b");
        const auto made =
            launch::run_of(launch::with_model(read(text), vision),
                           {.cluster = "a100-sxm:8", .gpus = 8, .model = vision, .dataset = "constant-100+1x336px"});
        std::string all;
        for (const auto& module : made.options.workload.model_read->modules)
            all += module.adapters ? 'a' : module.trainable ? 't' : 'f';
        return all;
    };
    CHECK(trained(factory) == "fa");
    CHECK(trained(factory + "--finetuning_type full") == "ft");
    CHECK(trained(factory + "--finetuning_type full --freeze_vision_tower false") == "tt");
    CHECK(trained(swift + "--max_length 2048 --freeze_vit false") == "aa");
    const std::string qwen = "torchrun qwenvl/train/train_qwen.py --bf16 --model_name_or_path M ";
    CHECK(trained(qwen + "--tune_mm_llm True") == "ft");
    CHECK(trained(qwen + "--tune_mm_vision True") == "tf");
    CHECK(trained(qwen + "--lora_enable True") == "fa");
    const std::string internvl = "python internvl_chat_finetune.py --bf16 True --model_name_or_path M ";
    CHECK(trained(internvl + "--freeze_backbone True") == "ft");
    CHECK(trained(internvl + "--freeze_llm True --use_llm_lora 16") == "ta");
    CHECK(trained(internvl + "--freeze_llm True --freeze_backbone True --use_llm_lora 16") == "fa");
}

// 2U1/Qwen-VL-Series-Finetune 93fef86 src/params.py, src/train/train_sft.py
TEST_CASE("Qwen-VL-Series-Finetune adapts the language model, and the tower where it is told to") {
    const std::string start = "torchrun src/train/train_sft.py --freeze_merger False --model_id Qwen/";
    const std::string words = start + "Qwen2.5-VL-3B-Instruct --bf16 True ";
    const ShardedLaunch l = read(words + "--freeze_llm True --lora_enable True --max_seq_length 4096");
    CHECK(l.has_adapters());
    CHECK(l.lora_rank == 64);
    CHECK(l.tower_lora_rank == 0);
    CHECK(l.lora_leaves_others);
    CHECK_FALSE(l.freeze_tower);
    CHECK(l.attention == "flash");
    CHECK(l.fused_loss);
    CHECK_FALSE(l.length);  // that cuts nothing
    CHECK(read(words + "--lora_enable True --vision_lora True --lora_rank 32").tower_lora_rank == 32);
    CHECK(l.dtype == "bfloat16");
    CHECK(read(start + "Qwen2-VL-7B-Instruct").dtype == "float32");
    CHECK_FALSE(read(start + "Qwen3-VL-4B-Instruct --bf16 True --use_liger True").fused_loss);
    CHECK(read(words + "--disable_flash_attn2 True").attention == "sdpa");
    const ShardedLaunch pairs = read("torchrun src/train/train_dpo.py --model_id M --bf16 True --freeze_merger True");
    CHECK(pairs.stage == "dpo");
    CHECK(pairs.tuner == "full");
    CHECK(pairs.freeze_projector);
}

TEST_CASE("ms-swift rings what its key and value heads do not share out, without padding") {
    CHECK(broken(swift + "--sequence_parallel_size 4", "ms-swift").empty());
    const std::string ring = swift + "--sequence_parallel_size 8 --attn_impl flash_attn --padding_free true";
    CHECK(broken(ring, "ms-swift").empty());
    const auto shared = launch::with_model(read(ring), workloads::model("qwen2.5-7b"));
    CHECK((shared.sequence == 4 && shared.ring == 2));  // 3602360a: gcd(4, 8); the 28 heads do not count
}

TEST_CASE("every rule of a sharded trainer is broken by its launch alone") {
    struct Row {
        const char* framework;
        const char* id;
        std::string launch;
        std::int64_t gpus = 8;
    };
    const std::string veomni = "bash train.sh tasks/train_vlm.py --model.model_path M ";
    const std::string automodel = "torchrun examples/llm_finetune/finetune.py --step_scheduler.local_batch_size 1 ";
    const std::vector<Row> rows{
        {"llama-factory", "pure-bf16", factory + "--pure_bf16 true --deepspeed ds_z3_config.json"},
        {"llama-factory", "neat-packing", "llamafactory-cli train --stage pt --neat_packing true --bf16 true"},
        {"llama-factory", "one-sharding", factory + "--deepspeed ds_z3_config.json --fsdp full_shard"},
        {"llama-factory", "one-precision", factory + "--fp16 true"},
        {"llama-factory", "deepspeed-values",
         factory + "--per_device_train_batch_size 2 --deepspeed '{\"train_micro_batch_size_per_gpu\": 4}'"},
        {"llama-factory", "shards", "llamafactory-cli sft --model M --mp_shard_size 3"},
        {"llama-factory", "global-batch", "llamafactory-cli sft --model M --global_batch_size 12"},
        {"ms-swift", "packing-attention", swift + "--packing true"},
        {"ms-swift", "ring-padding", swift + "--sequence_parallel_size 8"},
        {"ms-swift", "one-sharding", swift + "--deepspeed zero2 --fsdp fsdp2"},
        {"ms-swift", "one-precision", swift + "--bf16 true --fp16 true"},
        {"ms-swift", "deepspeed-values", swift + "--deepspeed '{\"train_micro_batch_size_per_gpu\": 4}'"},
        {"hugging-face-trainer", "one-sharding", script + "--deepspeed z.json --fsdp full_shard"},
        {"hugging-face-trainer", "one-precision", script + "--fp16 True"},
        {"hugging-face-trainer", "deepspeed-values", script + "--deepspeed '{\"gradient_accumulation_steps\": 4}'"},
        {"veomni", "world", veomni + "--train.accelerator.ulysses_size 3"},
        {"veomni", "degrees", veomni + "--train.tensor_parallel_size 2"},
        {"veomni", "shards", veomni + "--train.accelerator.dp_replicate_size 3"},
        {"veomni", "global-batch", veomni + "--train.global_batch_size 12"},
        {"nemo-automodel", "world", automodel + "--distributed.tp_size 3"},
        {"nemo-automodel", "replicas", automodel + "--distributed.dp_replicate_size 8"},
        {"nemo-automodel", "experts", automodel + "--distributed.ep_size 3"},
        {"nemo-automodel", "global-batch", automodel + "--step_scheduler.global_batch_size 12"},
        {"nemo-automodel", "pipeline-batch", automodel + "--distributed.pp_size 2"},
        {"nemo-automodel", "stages",
         automodel + "--step_scheduler.local_batch_size 2 --distributed.pp_size 2 "
                     "--distributed.pipeline.pp_schedule round"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.id);
        CAPTURE(row.launch);
        CHECK(broken(row.launch, row.framework, row.gpus) == std::vector<std::string>{row.id});
    }
    for (const auto& rule : launch::rule_texts()) {
        if (launch::framework_called(rule.framework).dialect != launch::Dialect::sharded_settings) continue;
        CAPTURE(rule.framework);
        CAPTURE(rule.id);
        CHECK(std::any_of(rows.begin(), rows.end(),
                          [&](const Row& row) { return rule.framework == row.framework && rule.id == row.id; }));
    }
    CHECK(broken(factory + "--deepspeed ds_z3_config.json", "llama-factory").empty());
    CHECK(broken(swift + "--packing true --attn_impl flash_attn", "ms-swift").empty());
    CHECK(broken(veomni + "--train.global_batch_size 16", "veomni").empty());
    CHECK(broken(automodel + "--distributed.tp_size 2 --step_scheduler.global_batch_size 8", "nemo-automodel").empty());
}

TEST_CASE("every trainer has tables with a source, and every row a member that no earlier table has") {
    for (const auto& trainer : frameworks::sharded_trainers()) {
        CAPTURE(trainer.entry);
        for (const auto& table : trainer.tables) {
            CHECK_FALSE(table.source.empty());
            for (const auto& row : table.rows)
                if (!row.setting.empty()) CHECK(frameworks::sharded_row(trainer, row.setting) != nullptr);
        }
    }
}

TEST_CASE("a value in quotes that begins like a redirection is one, and flags behind it count") {
    CHECK(read(swift + "--response_prefix '<think>' --packing true 2>&1 | tee log").packs == true);
}

TEST_CASE("samples of NeMo AutoModel are as long as something holds them to") {
    const std::string words = "torchrun examples/llm_finetune/finetune.py --step_scheduler.local_batch_size 1 ";
    const std::string chat =
        words + "--dataset._target_ nemo_automodel.components.datasets.llm.chat_dataset.ChatDataset ";
    const std::string long_as = chat + "--dataset.seq_length 1024 ";
    CHECK(read(words + "--dataset.seq_length 1024").length == 1024);
    for (const char* whole :
         {"", "--dataset.truncation False", "--dataset.truncation do_not_truncate", "--dataset.truncation null"}) {
        CAPTURE(whole);
        const auto l = read(long_as + whole);
        CHECK_FALSE(l.length);
        CHECK(l.uncut);
    }
    for (const char* cut : {"True", "longest_first"}) {
        CAPTURE(cut);
        const auto l = read(long_as + "--dataset.truncation " + cut);
        CHECK(l.length == 1024);
        CHECK_FALSE(l.padded_length);
        CHECK(read(long_as + "--dataset.padding max_length --dataset.truncation " + cut).padded_length == 1024);
    }
    const std::string mock = "nemo_automodel.components.datasets.llm.mock_iterable_dataset.MockIterableDataset";
    const auto alike = read(words + "--dataset.seq_len 4096 --dataset._target_ " + mock);
    CHECK(alike.length == 4096);
    CHECK(alike.padded_length == 4096);  // each has as many tokens
    CHECK_FALSE(read(words + "--dataset.seq_len 4096").padded_length);
    CHECK(read(chat + "--dataloader.collate_fn.max_length 2048").padded_length == 2048);
    CHECK(read(chat + "--dataloader.collate_fn.max_length 2048").length == 2048);
    CHECK_FALSE(read(chat + "--dataloader.collate_fn.max_length 0").padded_length);
    CHECK_FALSE(read(chat + "--dataloader.collate_fn.max_length 0").length);
    const auto packed = read(long_as + "--packed_sequence.pack_size 3072");
    CHECK(packed.packs == true);
    CHECK(packed.length == 3072);
    CHECK(packed.padded_length == 3072);
    CHECK_FALSE(read(swift + "--packing true --packing_length 3072 --max_length 1024").padded_length);
}

TEST_CASE("a pipeline of NeMo AutoModel has the stages and microbatches that it makes") {
    const std::string words =
        "torchrun examples/llm_finetune/finetune.py --step_scheduler.local_batch_size 8 --distributed.pp_size 2 "
        "--dataset.seq_length 1024 --distributed.pipeline.pp_microbatch_size 2 ";
    const auto layers = [&](const std::string& more) {
        const auto built = launch::built_layers(launch::with_model(read(words + more), workloads::model("qwen2.5-7b")));
        return std::pair(built.layers, built.why_not);
    };
    using Layers = std::vector<std::int64_t>;
    const std::string chunks = "--distributed.pipeline.pp_schedule interleaved1f1b ";
    const std::string fours = chunks + "--distributed.pipeline.layers_per_stage 4 ";
    const std::string to = "--distributed.pipeline.round_virtual_stages_to_pp_multiple ";

    CHECK(layers("").first == Layers{14, 14});
    CHECK(layers(chunks).first == Layers{7, 7, 7, 7});
    CHECK(layers(fours).second == "28 layers in stages of 4 make 7 stages, no multiple of pp 2");
    CHECK(layers(fours + to + "null").second == layers(fours).second);
    CHECK(layers(fours + to + "up").first == Layers{4, 4, 4, 4, 3, 3, 3, 3});
    CHECK(layers(fours + to + "down").first == Layers{5, 5, 5, 5, 4, 4});
    CHECK(layers("--distributed.pipeline.layers_per_stage 7").second == "1F1B has 1 stage a rank, 2 are made");

    const auto made = run(words + fours + to + "up");
    CHECK(made.options.layers == "4x4,3x4");
    CHECK(made.options.policy == "interleaved");
    CHECK(made.options.workload.microbatches == 4);
    CHECK(read(words).tokens() == 2048);
    CHECK(read(words).dp(8) == 4);
    CHECK(made.doubts.empty());
}

TEST_CASE("layers of NeMo AutoModel stay gathered in a pipeline and beside shared experts, unless it is told else") {
    const std::string words =
        "torchrun examples/llm_finetune/finetune.py --step_scheduler.local_batch_size 2 --dataset.seq_length 1024 ";
    const std::string freed = "--distributed.reshard_after_forward true";
    const std::string pipeline = "--distributed.pp_size 2 ", experts = "--distributed.ep_size 4 ";
    CHECK(recipe(words).zero == 3);
    CHECK(recipe(words + "--distributed.reshard_after_forward false").zero == 2);
    CHECK(recipe(words + pipeline).zero == 2);
    CHECK(recipe(words + pipeline + freed).zero == 3);
    CHECK(read(words + experts).zero_stage() == 2);
    CHECK(read(words + experts + freed).zero_stage() == 3);
    CHECK(read(words + experts + "--distributed.moe.reshard_after_forward true").zero_stage() == 3);
    CHECK(recipe(words + "--distributed.moe.reshard_after_forward false").zero == 3);
}

TEST_CASE("the model of NeMo AutoModel without weights is the one of its configuration") {
    const auto named = [](const std::string& words) {
        return launch::read_script("torchrun examples/llm_finetune/finetune.py --distributed.tp_size 1 " + words,
                                   "a.sh")
            .named_model;
    };
    const std::string config = "--model.config.pretrained_model_name_or_path Qwen/Qwen3-8B ";
    CHECK(named(config) == "Qwen/Qwen3-8B");
    CHECK(named(config + "--model.pretrained_model_name_or_path Qwen/Qwen3-4B") == "Qwen/Qwen3-4B");
    CHECK(named("--model.config Qwen/Qwen3-14B") == "Qwen/Qwen3-14B");
}

TEST_CASE("TransformerEngine's Adam keeps moments of 32 bits, and masters or what 16 bits lack of them") {
    const std::string words =
        "torchrun examples/llm_finetune/finetune.py --step_scheduler.local_batch_size 1 --dataset.seq_length 1024 "
        "--model.torch_dtype bf16 ";
    const std::string fused = words + "--optimizer._target_ transformer_engine.pytorch.optimizers.FusedAdam ";
    const std::string masters = fused + "--optimizer.master_weights true ";
    CHECK(recipe(words).state.optimizer == 4);
    CHECK(recipe(fused).state.optimizer == 8);
    CHECK(recipe(masters).state.optimizer == 12);
    CHECK(recipe(masters + "--optimizer.store_param_remainders true").state.optimizer == 10);
    CHECK(run(masters).doubts.empty());
}

TEST_CASE("settings say in which direction they change memory: fewer states than Adam's, other depths") {
    const auto effect = [](const std::string& name, const std::string& value) {
        const auto* const row =
            frameworks::memory_setting(launch::Dialect::sharded_settings, name, {value}, {true, false});
        return row == nullptr ? std::string("none") : std::string(frameworks::name_of(row->effect));
    };
    CHECK(effect("use_muon", "true") == "less");
    CHECK(effect("use_galore", "true") == "less");
    CHECK(effect("use_apollo", "true") == "less");
    CHECK(effect("use_muon", "false") == "none");
    CHECK(effect("optimizer", "muon") == "less");
    CHECK(effect("optimizer", "multimodal") == "none");
    CHECK(effect("optimizer", "muonclip") == "either");
    // Another depth than the model's that is named.
    CHECK(effect("model.num_hidden_layers", "2") == "either");
    CHECK(effect("model.config.num_hidden_layers", "2") == "either");
    CHECK(effect("model.num_nextn_predict_layers", "0") == "none");
    CHECK(effect("model.num_nextn_predict_layers", "2") == "more");
}

TEST_CASE("experts that are shared out in several groups of shards are said to be counted as near as that goes") {
    const std::string words =
        "torchrun examples/llm_finetune/finetune.py --step_scheduler.local_batch_size 1 --dataset.seq_length 1024 ";
    const auto says = [&](const std::string& more) {
        const auto assumed = run(words + more).assumed;
        return std::any_of(assumed.begin(), assumed.end(),
                           [](const std::string& one) { return one.starts_with("2 groups hold all shards"); });
    };
    CHECK(says("--distributed.dp_replicate_size 2 --distributed.ep_size 2"));
    CHECK_FALSE(says("--distributed.dp_replicate_size 2"));
    CHECK_FALSE(says("--distributed.ep_size 2"));
}

TEST_CASE("eager attention keeps scores of every layer, or of one where they are worked out again") {
    const std::string words = swift + "--max_length 1024 --per_device_train_batch_size 2 ";
    const auto scores = [&](const std::string& more) { return run(words + more).besides.scores; };
    // 28 heads of Qwen2.5-7B, two sequences of 1024 positions, 28 layers; 24 heads more than there are of keys and of
    // values, of 128 numbers in 16 bits.
    const std::int64_t all = 28LL * 2 * 1024 * 1024, keys = 24LL * 128 * 4 * 2 * 1024;
    CHECK(scores("--attn_impl flash_attn") == Bytes{});
    CHECK(scores("") == Bytes{});
    CHECK(scores("--attn_impl eager") == Bytes{all * 16 + keys});  // checkpointing is ms-swift's default
    CHECK(scores("--attn_impl eager --gradient_checkpointing false") == Bytes{all * (6 * 28 + 10) + keys * 28});
    CHECK(scores("--attn_impl eager --sequence_parallel_size 4") == Bytes{(all * 16 + keys) / 4});
    CHECK(run(words + "--attn_impl eager").doubts.empty());
}

TEST_CASE("ms-swift's names until 2.6 say what they said then, with the defaults of then") {
    const ShardedLaunch full = read(swift + "--sft_type full --batch_size 4 --dtype fp16 --deepspeed default-zero3");
    CHECK(full.tuner == "full");
    CHECK(full.micro_batch == 4);
    CHECK(full.dtype == "float16");
    CHECK(full.zero_stage() == 3);
    CHECK(full.missing.empty());
    CHECK_FALSE(full.freeze_tower);
    CHECK(full.length == 2048);
    CHECK(launch::written(full, &ShardedLaunch::micro_batch) == "--per_device_train_batch_size");
    const ShardedLaunch said = read(swift + "--sft_type lora --freeze_vit true --max_length 4096");
    CHECK(said.tuner == "lora");
    CHECK(said.freeze_tower);
    CHECK(said.length == 4096);
    CHECK_FALSE(read(swift + "--tuner_type full").length.has_value());
}

TEST_CASE("of Qwen2-VL's and Qwen2.5-VL's encoders transformers held scores, unless attention is flash") {
    const auto most = [](const std::string& text, const char* name, const char* samples) {
        const auto model = workloads::model(name);
        const auto made = launch::run_of(launch::with_model(read(text), model),
                                         {.cluster = "a100-sxm:8", .gpus = 8, .model = model, .dataset = samples});
        std::int64_t bytes = 0;
        for (const auto& one : made.doubts)
            if (one.most) bytes = one.most->count;
        return bytes;
    };
    const std::string sft = swift + "--max_length 2048 ";
    const char* const image = "constant-100+1x448px";
    // 32 x 32 patches, 16 heads, 13 bytes of a score.
    constexpr std::int64_t held = std::int64_t{16} * 1024 * 1024 * 13;
    for (const char* implementation : {"", "--attn_impl sdpa"})
        CHECK(most(sft + implementation, "qwen2.5-vl-7b", image) == held);
    CHECK(most(sft + "--per_device_train_batch_size 2", "qwen2.5-vl-7b", image) == 4 * held);
    CHECK(most(factory, "qwen2.5-vl-7b", image) == 8 * 8 * held);  // 8 samples a microbatch, where nobody says it
    // Trained, each of 32 layers keeps its own unless it is recomputed, and a backward has 12 bytes of gradients.
    const std::string trained = sft + "--tuner_type full --freeze_vit false ";
    CHECK(most(trained, "qwen2.5-vl-7b", image) == held + held / 13 * 12);
    CHECK(most(trained + "--gradient_checkpointing false", "qwen2.5-vl-7b", image) == 32 * held + held / 13 * 12);
    CHECK(most(factory + "--packing true", "qwen2.5-vl-7b", "constant-100") == 0);
    for (const char* implementation : {"flash_attn", "eager"})
        CHECK(most(sft + "--attn_impl " + implementation, "qwen2.5-vl-7b", image) == 0);
    CHECK(most(sft, "qwen2.5-vl-7b", "constant-100") == 0);
    CHECK(most(sft, "qwen3-vl-8b", image) == 0);
}
