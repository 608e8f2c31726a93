// Recipes that launches name: what these set, by frameworks' tables.
#include "pipeweaver/frameworks/recipe.hpp"

#include "launch/rules/layout_text.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/frameworks/memory_setting.hpp"
#include "pipeweaver/launch/check.hpp"
#include "pipeweaver/launch/fit.hpp"
#include "pipeweaver/launch/megatron.hpp"
#include "pipeweaver/launch/model.hpp"
#include "pipeweaver/launch/said.hpp"
#include "pipeweaver/launch/titan.hpp"
#include "pipeweaver/workloads/catalogue.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace pipeweaver;
using launch::Dialect;

namespace {

launch::SaidLaunch run_recipe(const std::string& words) {
    return launch::read_script("torchrun --nproc_per_node=8 scripts/training/run_recipe.py " + words + "\n", "a.sh");
}

}  // namespace

TEST_CASE("a checkpoint's folder names the model where no model is said") {
    const auto model_of = [](const std::string& words) {
        return launch::read_script("megatron sft --micro_batch_size 1 " + words + "\n", "a.sh").named_model;
    };
    CHECK(model_of("--load Qwen3-8B-mcore") == "Qwen3-8B-mcore");
    CHECK(model_of("--mcore_model a/Qwen3-8B-mcore --load b") == "a/Qwen3-8B-mcore");
    CHECK(model_of("--load a --model Qwen/Qwen3-8B") == "Qwen/Qwen3-8B");
    CHECK(model_of("--tensor_model_parallel_size 2").empty());
}

TEST_CASE("a recipe's values stand in front of the launch's, which count") {
    const auto said = run_recipe("--recipe qwen25_vl_7b_sft_config model.tensor_model_parallel_size=4");
    CHECK(said.knows_named);
    CHECK(said.named == "recipe 'qwen25_vl_7b_sft_config'");
    CHECK(said.named_model == "Qwen/Qwen2.5-VL-7B-Instruct");
    CHECK(said.framework == "megatron-bridge:0.6.0");
    const auto l = launch::read_megatron(said);
    CHECK(l.tp == 4);
    CHECK(l.micro_batch == 2);
    CHECK(l.global_batch == 32);
    CHECK(l.seq_length == 4096);
    CHECK(l.fused_loss_by == "native");
    CHECK(l.bf16);
    CHECK(l.distributed_optimizer);
    CHECK(launch::read_megatron(run_recipe("--recipe qwen25_vl_7b_sft_config")).tp == 2);
}

TEST_CASE("the recipe's program has flags, and makes names of a model and a mode") {
    const auto said = run_recipe("--model qwen25_vl_7b --mode lora -pp 2 --seq_length=8192 -mb 1 train.train_iters=5");
    CHECK(said.named == "recipe 'qwen25_vl_7b_peft_config'");
    const auto l = launch::read_megatron(said);
    CHECK(l.lora_rank == 32);
    CHECK(l.pp == 2);
    CHECK(l.seq_length == 8192);
    CHECK(l.micro_batch == 1);
}

TEST_CASE("of a recipe with layouts by degrees the one of the launch's degrees counts") {
    const std::string name = "--recipe kimi_k2_pretrain_config ";
    CHECK(launch::read_megatron(run_recipe(name)).layout.starts_with("Et*4|t*4|"));
    CHECK(launch::read_megatron(run_recipe(name + "model.pipeline_model_parallel_size=8")).layout ==
          "Et*8|t*8|t*8|t*8|t*8|t*8|t*8|t*5L");
    CHECK(launch::read_megatron(run_recipe(name + "-pp 8 model.pipeline_model_parallel_layout=null")).layout.empty());
}

TEST_CASE("a benchmark's batch is as much for each replica on other GPUs") {
    const std::string name = " scripts/training/run_recipe.py --recipe llama3_8b_pretrain_8gpu_h100_bf16_config ";
    const auto batch = [&](const std::string& launcher, const std::string& more) {
        return launch::read_megatron(launch::read_script(launcher + name + more + "\n", "a.sh")).global_batch;
    };
    CHECK(batch("srun python", "") == 128);
    CHECK(batch("torchrun --nproc_per_node 8 --nnodes 2", "") == 256);
    CHECK(batch("torchrun --nproc_per_node 8", "model.context_parallel_size=4") == 64);
    CHECK(batch("torchrun --nproc_per_node 8 --nnodes 2", "-gb 32") == 32);
}

TEST_CASE("experts of a known recipe are whole where it is not said otherwise, and dispatched to all") {
    const std::string name = "--recipe qwen3_30b_a3b_sft_config model.expert_tensor_parallel_size=null ";
    const auto l = launch::read_megatron(run_recipe(name + "model.expert_model_parallel_size=4"));
    CHECK(l.etp == 1);
    CHECK(l.dispatcher == "alltoall");
    CHECK_FALSE(launch::read_megatron(run_recipe(name + "model.expert_model_parallel_size=1")).etp.has_value());
}

TEST_CASE("degrees out of bounds do not scale a recipe's batch") {
    const auto said =
        run_recipe("--recipe deepseek_v3_pretrain_1024gpu_h100_bf16_config -tp 4294967296 -pp 4294967296");
    CHECK_FALSE(said.settings.empty());
}

TEST_CASE("the runner counts the loss per token itself where it fine-tunes") {
    const auto asks = [](const std::string& recipe) {
        const auto said = run_recipe("--recipe " + recipe + " ddp.average_in_collective=true");
        const auto model = launch::named_model("qwen2.5-vl-7b", said);
        REQUIRE(model.built);
        return launch::with_encoders(launch::read_megatron(said), model, said).averages_gradients;
    };
    CHECK_FALSE(asks("qwen25_vl_7b_sft_config"));
    CHECK(asks("qwen25_vl_7b_pretrain_config"));
}

TEST_CASE("the runner turns off sequence parallelism without tensor parallelism") {
    const std::string words = "--recipe mine model.sequence_parallel=true model.tensor_model_parallel_size=";
    CHECK_FALSE(launch::read_megatron(run_recipe(words + "1")).sequence_parallel);
    CHECK(launch::read_megatron(run_recipe(words + "2")).sequence_parallel);
    const auto overrides = launch::read_words(Dialect::bridge_overrides, "model.sequence_parallel=true", "words");
    CHECK(launch::read_megatron(overrides).sequence_parallel);
}

TEST_CASE("what hands its words to the recipe's program is read like it, with the GPUs that it starts") {
    const auto said = launch::read_script(
        "./scripts/training/train.sh --nodes 2 --gpus-per-node 8 --recipe llama3_8b_pretrain_8gpu_h100_bf16_config "
        "-tp 2\n",
        "a.sh");
    CHECK(said.gpus == 16);
    CHECK(launch::read_megatron(said).tp == 2);
    CHECK(launch::read_megatron(said).global_batch == 128);
    CHECK(launch::read_script("srun --gpus-per-node 8 python pretrain_gpt.py --num-layers 8\n", "a.sh").gpus == 0);
}

TEST_CASE("a recipe that no table has sets what is not known") {
    const auto said = run_recipe("--recipe mine model.tensor_model_parallel_size=4");
    CHECK_FALSE(said.knows_named);
    CHECK(said.named == "recipe 'mine'");
    CHECK(said.named_model.empty());
}

TEST_CASE("benchmarks of Megatron-Bridge are known by what its scripts of performance make their names of") {
    const auto said = [](const std::string& more) {
        return launch::read_script("torchrun --nproc_per_node 8 scripts/performance/run_script.py " + more + "\n",
                                   "a.sh");
    };
    const auto plain = said("--model_family_name qwen --model_recipe_name qwen3_30b_a3b --gpu h100 --num_gpus 16");
    CHECK(plain.dialect == Dialect::bridge_overrides);
    CHECK(plain.named == "recipe 'qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config'");
    CHECK(plain.knows_named);
    CHECK(plain.named_model == "Qwen/Qwen3-30B-A3B");
    CHECK(said("-m qwen -mr qwen3_30b_a3b -g h100 -ng 16 -c fp8_cs").named ==
          "recipe 'qwen3_30b_a3b_pretrain_16gpu_h100_fp8cs_config'");
    CHECK(said("-mr qwen3_30b_a3b -g h100 -ng 16 --task sft").knows_named);
    CHECK_FALSE(said("-mr qwen3_30b_a3b -g b200 -ng 8 --task sft").knows_named);
}

TEST_CASE("configurations of torchtitan's registry are known by module and name, or by variables") {
    const auto said = launch::read_script("torchrun -m torchtitan.train --module llama3 --config llama3_70b\n", "a.sh");
    const auto l = launch::read_titan(said);
    CHECK(l.tp == 8);
    CHECK(l.local_batch == 8);
    CHECK(l.seq_len == 8192);
    CHECK(l.checkpoint == "full");
    CHECK_FALSE(l.compiled);
    CHECK(said.named_model == "llama3-70b");
    const auto other = launch::read_script(
        "MODULE=\"llama3\" CONFIG=\"llama3_8b\" ./run_train.sh --training.local_batch_size 4\n", "a.sh");
    CHECK(other.knows_named);
    CHECK(launch::read_titan(other).local_batch == 4);
    CHECK(launch::read_titan(other).checkpoint == "selective");
}

TEST_CASE("an option names a configuration of torchtitan's registry as a command does") {
    const auto l = [](const std::string& more) {
        return launch::read_words(Dialect::titan_settings, more + " --training.local_batch_size 2",
                                  "--torchtitan-args");
    };
    const auto known = l("--module llama3 --config llama3_70b");
    CHECK(known.knows_named);
    CHECK(known.named_model == "llama3-70b");
    CHECK(launch::read_titan(known).tp == 8);
    CHECK(launch::read_titan(known).local_batch == 2);
    const auto own = l("--module mine --config mine_1b");
    CHECK_FALSE(own.knows_named);
    CHECK(own.named == "configuration 'mine_1b'");
    CHECK(l("").named.empty());
}

TEST_CASE("configurations of torchtitan before 0.3 are known by the names of their files") {
    const std::string file = "./torchtitan/models/llama3/train_configs/llama3_70b.toml";
    for (const std::string& text :
         {"CONFIG_FILE=\"" + file + "\" ./run_train.sh --activation_checkpoint.mode none --training.compile",
          "CONFIG_FILE=\"/home/$USER" + file.substr(1) + "\" ./run_train.sh --activation_checkpoint.mode none",
          "torchrun -m torchtitan.train --job.config_file " + file + " --activation_checkpoint.mode=none"}) {
        const auto said = launch::read_script(text + "\n", "a.sh");
        CHECK(said.knows_named);
        const auto l = launch::read_titan(said);
        CHECK(l.tp == 8);
        CHECK(l.checkpoint == "none");
        CHECK(l.not_known.empty());
    }
    CHECK_FALSE(launch::read_script("CONFIG_FILE=\"configs/${SIZE}.toml\" ./run_train.sh --training.compile\n", "a.sh")
                    .knows_named);
    const auto own = launch::read_script(
        "torchrun -m torchtitan.train --job.config_file ${CONFIG_FILE} --activation_checkpoint.mode full "
        "--parallelism.expert_tensor_parallel_degree 1\n",
        "a.sh");
    CHECK(launch::read_titan(own).checkpoint == "full");
    CHECK(launch::read_titan(own).not_known.empty());
    CHECK_FALSE(launch::read_titan(own).cuda_graphs);
    const auto by_flags = launch::read_titan(launch::read_script(
        "torchrun -m torchtitan.train --model.name llama3 --training.dataset c4 --activation_checkpoint.mode full\n",
        "a.sh"));
    CHECK(by_flags.checkpoint == "full");
    CHECK(by_flags.not_known.empty());
    const auto later = launch::read_script("torchrun -m torchtitan.train --activation_checkpoint.mode none\n", "a.sh");
    CHECK(launch::read_titan(later).cuda_graphs);
    CHECK(launch::read_titan(later).not_known.size() == 1);
}

TEST_CASE("all that recipes set is read, or is known to change memory") {
    for (const Dialect dialect : {Dialect::bridge_overrides, Dialect::titan_settings}) {
        const auto names = frameworks::recipe_names(dialect);
        CHECK(names.size() > 40);
        for (const std::string_view name : names) {
            CAPTURE(name);
            const auto recipe = frameworks::recipe_called(dialect, name);
            REQUIRE(recipe.has_value());
            launch::SaidLaunch said{dialect, "recipe", {}, {}, {}};
            for (const auto& [setting, value] : recipe->settings) {
                const std::string known(setting.substr(0, setting.find('@')));
                const bool is_read = dialect == Dialect::titan_settings ? launch::is_titan_setting(known)
                                                                        : launch::is_megatron_setting(dialect, known);
                CAPTURE(known);
                CHECK((is_read || frameworks::memory_setting(dialect, known, {}, {}) != nullptr));
                if (known.ends_with("layout")) CHECK(launch::layout_letters(std::string(value)).why_not.empty());
                said.settings.push_back({known, {std::string(value)}, "recipe"});
            }
            if (dialect == Dialect::titan_settings)
                CHECK_NOTHROW(static_cast<void>(launch::read_titan(said)));
            else
                CHECK_NOTHROW(static_cast<void>(launch::read_megatron(said)));
        }
    }
}

TEST_CASE("a recipe whose model is not known breaks rules that ask for none of its sizes") {
    const auto checked = [](const std::string& words, const std::string& cluster) {
        launch::CheckAsked asked;
        asked.said = launch::read_script("python scripts/training/run_recipe.py " + words + "\n", "a.sh");
        asked.cluster = cluster;
        return launch::check(asked, in_order);
    };
    // 192 samples on 128 replicas of two GPUs each, in Megatron-Bridge 0.6.0.
    const auto odd = checked("--recipe nemotronh_56b_pretrain_256gpu_b200_bf16_config", "b200-sxm:256");
    CHECK(odd.verdict == launch::Verdict::does_not_construct);
    CHECK(odd.broken.at(0).id == "global-batch");
    CHECK(odd.open.empty());
    const auto groups = checked("--recipe olmoe_7b_sft_config -tp 3", "h100-sxm:8");
    CHECK(groups.broken.at(0).id == "groups-world");
    CHECK(checked("--recipe olmoe_7b_sft_config", "h100-sxm:8").verdict == launch::Verdict::undecided);
    CHECK(checked("--recipe mine -tp 3", "h100-sxm:8").verdict == launch::Verdict::undecided);
}

TEST_CASE("a model that is not known breaks rules of degrees, but none of experts that versions share out otherwise") {
    const auto verdict = [](const std::string& program, const std::string& degrees) {
        launch::CheckAsked asked;
        asked.said = launch::read_script(program + degrees + "\n", "a.sh");
        asked.cluster = "h100-sxm:8";
        return *launch::check(asked, in_order).verdict;
    };
    const std::string swift = "megatron sft --model Foo/Bar-9B --max_length 4096 ";
    CHECK(verdict(swift, "--tensor_model_parallel_size 3") == launch::Verdict::does_not_construct);
    CHECK(verdict(swift, "--tensor_model_parallel_size 3 --expert_model_parallel_size 2") ==
          launch::Verdict::does_not_construct);
    CHECK(verdict(swift, "--tensor_model_parallel_size 4") == launch::Verdict::undecided);
    // Eight experts' ranks of two GPUs each, or of one.
    const std::string loong = "python loongforge/train.py --model-name foo-9b --seq-length 4096 --micro-batch-size 1 ";
    CHECK(verdict(loong, "--tensor-model-parallel-size 2 --expert-model-parallel-size 8") ==
          launch::Verdict::undecided);
}

TEST_CASE("a loss in chunks takes no more off than what a loss holds of logits") {
    const auto run = [](const std::string& words) {
        const auto model = workloads::find_model("llama3-8b");
        const auto said = launch::read_script("MODULE=llama3 CONFIG=llama3_8b ./run_train.sh " + words + "\n", "a.sh");
        return launch::run_of(launch::with_model(launch::read_titan(said), model),
                              {.cluster = "h100-sxm:8", .gpus = 8, .model = model, .dataset = "constant-4096"});
    };
    const std::string step = "--training.local_batch_size 2 --training.seq_len 4096 ";
    const auto whole = run(step).logits, halves = run(step + "--parallelism.tensor_parallel_degree 2").logits;
    REQUIRE((whole && halves));
    // Of each of 8192 positions and 128,256 entries at least a copy in 32 bits and its gradient.
    CHECK(whole->count % (std::int64_t{8192} * 128'256) == 0);
    CHECK(*whole >= Bytes{std::int64_t{8} * 8192 * 128'256});
    CHECK(whole->count == 2 * halves->count);
    CHECK_FALSE(run(step + "--parallelism.pipeline_parallel_degree 2").logits);
    const auto* const row = frameworks::memory_setting(launch::Dialect::titan_settings, "loss", {"chunked"}, {});
    REQUIRE(row != nullptr);
    CHECK(row->of_loss);
}
