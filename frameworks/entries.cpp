#include "frameworks/sharded_tables.hpp"
#include "pipeweaver/frameworks/entry.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

namespace pipeweaver::frameworks {

namespace {

using enum Dialect;

// A recipe of Megatron-Bridge trains in bf16 mixed precision with a distributed optimizer; what else it sets differs.
Entry bridge() {
    return {
        .name = "Megatron-Bridge",
        .dialect = bridge_overrides,
        .defaults = {{"model.bf16", "true", "model.fp16"},
                     {"ddp.use_distributed_optimizer", "true"},
                     {"model.cross_entropy_loss_fusion", "true"},
                     {"model.hidden_dropout", "0"}},
        .named = {"recipe", "recipe-name", "recipe_name", "config-file", "config_file"},
        .names = "recipe",
        .say = "as an override, or check the run_config.yaml that the recipe writes",
        .source = "NVIDIA-NeMo/Megatron-Bridge 067f987d: training/mixed_precision.py, recipes/, models/gpt_provider.py",
        .recipes = {"{recipe}", "{recipe-name}", "{recipe_name}"},
        .recipe_framework = "megatron-bridge:0.6.0",
        .builds = "megatron-bridge",
        .bounds_items = true,            // data/collators/sequence_padding.py cuts to it; a cut image is an error
        .unbounded_family = "kimi_k25",  // but in models/kimi_vl/modeling_kimi_k25_vl.py
        .data = {"dataset.source.dataset_name"}};
}

// Its own program has flags for what is said most; the data's length counts.
Entry bridge_runner() {
    Entry entry = bridge();
    // The others hand what is not theirs to it.
    entry.programs = {"run_recipe.py", "scripts/training/train.sh", "scripts/training/setup_experiment.py",
                      "scripts/performance/run_script.py", "scripts/performance/setup_experiment.py"};
    entry.source =
        "NVIDIA-NeMo/Megatron-Bridge v0.6.0: scripts/training/run_recipe.py, recipe_metadata.py, scripts/performance/"
        "argument_parser.py, utils/utils.py";
    entry.recipes.push_back("{model}_{mode}_config");
    entry.recipes.push_back(
        "{model_recipe_name|-mr}_{task=pretrain}_{num_gpus|-ng}gpu_{gpu|-g}_{compute_dtype|-c=bf16}_config");
    entry.recipe_words = {
        {"lora", "peft"}, {"dora", "peft"}, {"fp8_cs", "fp8cs"}, {"fp8_mx", "fp8mx"}, {"fp8_sc", "fp8sc"}};
    entry.turns_off_sequence_parallel = true;  // models/transformer_config.py, finalize; since 0.4
    // scripts/training/recipe_runner.py, sync_finetuning_cp_invariants
    entry.counts_loss_per_token = true;
    entry.flags = {{"gb", "train.global_batch_size"},
                   {"global_batch_size", "train.global_batch_size"},
                   {"mb", "train.micro_batch_size"},
                   {"micro_batch_size", "train.micro_batch_size"},
                   {"sl", "dataset.seq_length"},
                   {"seq_length", "dataset.seq_length"},
                   {"tp", "model.tensor_model_parallel_size"},
                   {"tensor_model_parallel_size", "model.tensor_model_parallel_size"},
                   {"pp", "model.pipeline_model_parallel_size"},
                   {"pipeline_model_parallel_size", "model.pipeline_model_parallel_size"},
                   {"cp", "model.context_parallel_size"},
                   {"context_parallel_size", "model.context_parallel_size"},
                   {"vp", "model.virtual_pipeline_model_parallel_size"},
                   {"virtual_pipeline_model_parallel_size", "model.virtual_pipeline_model_parallel_size"},
                   {"ep", "model.expert_model_parallel_size"},
                   {"expert_model_parallel_size", "model.expert_model_parallel_size"},
                   {"etp", "model.expert_tensor_parallel_size"},
                   {"expert_tensor_parallel_size", "model.expert_tensor_parallel_size"}};
    return entry;
}

// Megatron-SWIFT: defaults of its own arguments, before Megatron-LM's.
Entry swift() {
    return {.name = "ms-swift",
            .dialect = megatron_arguments,
            .programs = {"megatron sft", "megatron pt", "megatron rlhf", "swift/cli/_megatron/sft.py",
                         "swift/cli/_megatron/pt.py", "swift/cli/_megatron/rlhf.py"},
            .defaults = {{"bf16", "true", "fp16"},  // torch_dtype of the checkpoint
                         {"use-distributed-optimizer", "true"},
                         {"micro-batch-size", "1"},
                         {"global-batch-size", "16"},
                         {"recompute-granularity", "selective"},
                         {"moe-token-dispatcher-type", "alltoall"},
                         {"expert-tensor-parallel-size", "1"},
                         {"moe-grouped-gemm", "true"},
                         {"disable-bias-linear", "true"},
                         {"freeze-llm", "false"},
                         {"freeze-vit", "true"},
                         {"freeze-aligner", "true"},
                         {"tuner-type", "full", "train-type"},
                         {"max-completion-length", "512"},
                         {"attention-backend", "flash"},
                         {"hidden-dropout", "0"},
                         {"cross-entropy-loss-fusion", "true"},
                         {"cross-entropy-fusion-impl", "native"}},
            .meanings = {{"packing-length", "max-length"}, {"train-type", "tuner-type"}},
            .model = "model",
            .checkpoints = {"mcore_model", "mcore-model", "load"},
            .packs = "packing",
            .sets = {{"CUDA_DEVICE_MAX_CONNECTIONS", "1"}},  // swift/cli/_megatron/sft.py
            .source = "modelscope/ms-swift 3602360: swift/megatron/arguments/megatron_args.py",
            .builds = "ms-swift",
            .bounds_items = true,  // arguments/base_args/template_args.py: longer ones are deleted
            .unbounds = {{"truncation-strategy", "left"}, {"truncation-strategy", "right"}},
            .program_defaults = {{"megatron rlhf", "rlhf-type", "dpo"},  // megatron/arguments/rlhf_args.py
                                 {"swift/cli/_megatron/rlhf.py", "rlhf-type", "dpo"}},
            .unbounds_unless = {{"rlhf-type", "grpo", "truncation-strategy"}},
            .data = {"dataset", "cached-dataset"},
            .remakes = {"external-plugins", "custom-register-path", "custom-dataset-info", "columns"},
            .lengthens = {"system", "response-prefix", "model-name", "model-author"},
            .by_version = {{"cross-entropy-fusion-impl", "te"}},  // 4.0.2 to 4.3 with Transformer Engine 2.8
            .takes_file = true};                                  // swift/cli/main.py prepare_config_args
}

// Its --seq-length counts the positions of images; the language model's is --decoder-seq-length.
Entry multimodal() {
    return {.name = "Megatron-LM examples/multimodal",
            .dialect = megatron_arguments,
            .programs = {"examples/multimodal/train.py", "multimodal/train.py"},
            .defaults = {{"vision-model-type", "clip", "vision-model-type"}},  // none is not a choice
            .meanings = {{"decoder-seq-length", "seq-length"},
                         {"seq-length", "", "decoder-seq-length"},
                         {"encoder-seq-length", "", "decoder-seq-length"}},
            .source = "NVIDIA/Megatron-LM core_v0.16.1: examples/multimodal/model.py, multimodal_args.py",
            .builds = "megatron-lm"};
}

// LLaMA-Factory with USE_MCA=1: mcore_adapter's trainer, with names of Hugging Face's beside Megatron Core's. It trains
// all that is not frozen, whatever tuner is said; stage pt freezes nothing.
Entry factory_on_core() {
    Entry entry;
    entry.name = factory_on_megatron_core;
    entry.programs = {"llamafactory-cli train by USE_MCA"};  // no command: a variable makes it
    entry.defaults = {
        {"seq-length", "2048"},       {"micro-batch-size", "8"},           {"disable-bias-linear", "true"},
        {"hidden-dropout", "0"},      {"optimizer-offload-fraction", "0"}, {"freeze-llm", "false"},
        {"rlhf-type", "sft", "stage"}};
    entry.implied = {{"recompute-granularity", "full", "recompute-method", "uniform"},
                     {"recompute-granularity", "full", "recompute-num-layers", "1"}};
    for (const std::string_view stage : {"sft", "dpo"})
        for (const std::string_view part : {"freeze-vit", "freeze-aligner"})
            entry.implied.push_back({"rlhf-type", stage, part, "true"});
    entry.meanings = {{"cutoff-len", "seq-length"},
                      {"per-device-train-batch-size", "micro-batch-size"},
                      {"finetuning-type", ""},
                      {"stage", "rlhf-type"},
                      {"neat-packing", "packing"},
                      {"sequence-packing", "packing"},
                      {"fp8", "fp8-format"},
                      {"freeze-vision-tower", "freeze-vit"},
                      {"freeze-multi-modal-projector", "freeze-aligner"},
                      {"freeze-language-model", "freeze-llm"}};
    entry.model = "model-name-or-path";
    entry.packs = "packing";
    entry.turns_off_sequence_parallel = true;
    entry.attention_by_variables = true;
    entry.source =
        "alibaba/ROLL 8eb27cc mcore_adapter/src/mcore_adapter/training_args.py, models/model_config.py; "
        "hiyouga/LLaMA-Factory ff6d4d12 src/llamafactory/train/mca/workflow.py, hparams/";
    return entry;
}

// run_train.py with --use_mca, in LLaMA-Factory's words: adapters are trained where it is not told otherwise. Towers of
// Qwen2-VL alone may be frozen, which are counted as trained, too.
Entry mcore_adapter_example() {
    Entry entry = factory_on_core();
    entry.name = example_of_mcore_adapter;
    entry.programs = {"run_train.py by --use_mca"};  // no command: a flag makes it
    entry.defaults.push_back({"tuner-type", "lora", "finetuning-type"});
    std::erase_if(entry.implied, [](const Implied& one) { return one.then.starts_with("freeze-"); });
    for (Meaning& one : entry.meanings) {
        if (one.setting == "finetuning-type") one.as = "tuner-type";
        if (one.setting.starts_with("freeze-")) one.as = one.setting;
    }
    entry.source = "alibaba/ROLL 8eb27cc mcore_adapter/examples/train/run_train.py";
    return entry;
}

// Its models have dropout off and sizes of their own; samples of sft are cut to the length and padded to the longest.
Entry loongforge() {
    Entry entry;
    entry.name = "LoongForge";
    entry.programs = {"loongforge/train.py"};
    entry.defaults = {{"hidden-dropout", "0"}};
    entry.model = "model-name";
    entry.checkpoints = {"config-file"};  // called as its model is
    entry.packs = "packing-sft-data";
    entry.fills = {"training-phase", "pretrain"};
    entry.source =
        "baidu-baige/LoongForge c6275661 (20 August 2026): loongforge/models/foundation/*/*_config.py, "
        "data/sft_supervised_utils.py, data/sft_data_collator.py";
    return entry;
}

Entry titan() {
    return {.name = "torchtitan",
            .dialect = titan_settings,
            .programs = {"torchtitan.train", "torchtitan/train.py", "run_train.sh"},
            .named = {"config", "job.config_file"},
            .named_by_variables = {"CONFIG", "CONFIG_FILE"},
            .names = "configuration",
            .say = "as a setting of the launch",
            .model = "config",
            .source = "torchtitan 0.3.0: torchtitan/config, torchtitan/models/*/config_registry.py",
            .recipes = {"{module}/{config}", "{MODULE}/{CONFIG}", "{job.config_file}", "{CONFIG_FILE}"},
            .builds = "torchtitan",
            .bounds_items = true};  // hf_datasets/multimodal/mm_datasets.py leaves out longer ones
}

Entry refused(std::string_view name, std::vector<std::string_view> programs, std::string_view why) {
    return {.name = name, .dialect = megatron_arguments, .programs = std::move(programs), .refused = why};
}

// Trainers of others that people launch, by their programs and by keys of their files.
std::vector<Entry> refused_trainers(std::string_view why) {
    std::vector<Entry> all{
        refused("verl", {"verl.trainer.main_ppo", "verl.trainer.main_ppo_split", "verl.trainer.sft_trainer"}, why),
        refused("OpenRLHF",
                {"openrlhf.cli.train_sft", "openrlhf.cli.train_rm", "openrlhf.cli.train_dpo", "openrlhf.cli.train_kto",
                 "openrlhf.cli.train_ppo", "openrlhf.cli.train_ppo_ray"},
                why),
        refused("xtuner", {"xtuner train"}, why),
        refused("LitGPT", {"litgpt finetune", "litgpt finetune_full", "litgpt finetune_lora", "litgpt pretrain"}, why),
        refused("axolotl", {"axolotl train", "axolotl.cli.train", "axolotl/cli/train.py"}, why),
        refused("torchtune", {"tune run"}, why)};
    all[all.size() - 2].marks = {"base_model"};
    all.back().marks = {"model._component_"};
    return all;
}

std::vector<Entry> all_entries() {
    constexpr std::string_view degrees =
        "read are launches of Megatron-LM, Megatron-Bridge, ms-swift, torchtitan, LLaMA-Factory, VeOmni, NeMo "
        "AutoModel "
        "and scripts of Hugging Face's Trainer; `pipeweaver emulate` takes its degrees as options";
    // NVIDIA-NeMo/Megatron-Bridge 067f987d examples/megatron_mimo/llava/megatron_mimo_training_llava.py
    constexpr std::string_view modules = "each module has degrees and GPUs of its own, by variables of its program";
    std::vector<Entry> all{
        swift(),
        multimodal(),
        loongforge(),
        factory_on_core(),
        mcore_adapter_example(),
        titan(),
        bridge_runner(),
        refused("Megatron-LM's T5, RETRO or vision trainer",
                {"pretrain_t5.py", "pretrain_retro.py", "pretrain_ict.py", "pretrain_vision_classify.py",
                 "pretrain_vision_dino.py", "pretrain_vision_inpaint.py"},
                "read are models of decoder layers, with towers in front: no decoder here attends to an encoder of "
                "text"),
        refused("LoongForge's embodied trainer", {"loongforge/embodied/train.py"},
                "models of actions are not in the catalogue"),
        refused("Megatron-Bridge's examples/megatron_mimo",
                {"megatron_mimo_training_llava.py", "megatron_mimo_training_llava_audio.py"}, modules)};
    for (const std::vector<Entry>& some : {refused_trainers(degrees), llama_factory_entries(), sharded_swift_entries(),
                                           veomni_entries(), automodel_entries(), hugging_face_entries()})
        all.insert(all.end(), some.begin(), some.end());
    all.push_back(bridge());
    return all;
}

// Whether it is the word, or what follows a '/' or '.' in it.
bool ends_in(const std::string& word, std::string_view end) {
    if (end.empty() || !word.ends_with(end)) return false;
    const char before = word.size() == end.size() ? '/' : word[word.size() - end.size() - 1];
    return before == '/' || before == '.';
}

// "swift.cli.sft" of "swift/cli/sft.py", as "-m" takes it; empty: it is no file of Python.
std::string as_module(std::string_view file) {
    constexpr std::string_view ending = ".py";
    if (!file.ends_with(ending)) return {};
    std::string module(file.substr(0, file.size() - ending.size()));
    std::replace(module.begin(), module.end(), '/', '.');
    return module;
}

// Where the words of `program` end among them; 0: they are not ends of words in a row.
std::size_t behind(const std::vector<std::string>& words, std::string_view program) {
    const std::size_t blank = program.find(' ');
    const std::string_view first = program.substr(0, blank);
    const std::string module = as_module(first);
    for (std::size_t i = 0; i < words.size(); ++i) {
        const bool is_named =
            i > 0 && (words[i - 1] == "-m" || words[i - 1] == "--module") && ends_in(words[i], module);
        if (!is_named && !ends_in(words[i], first)) continue;
        if (blank == std::string_view::npos) return i + 1;
        if (i + 1 < words.size() && words[i + 1] == program.substr(blank + 1)) return i + 2;
    }
    return 0;
}

// Whether those from `begin` on name a mark of the entry, or a configuration file.
bool are_marked(const Entry& entry, const std::vector<std::string>& words, std::size_t begin) {
    return std::any_of(words.begin() + static_cast<std::ptrdiff_t>(begin), words.end(), [&](const std::string& word) {
        const bool is_file = word.ends_with(".yaml") || word.ends_with(".yml");
        return is_file || std::any_of(entry.marks.begin(), entry.marks.end(), [&](std::string_view mark) {
                   return word.starts_with("--" + std::string(mark));
               });
    });
}

}  // namespace

std::span<const Entry> entries() {
    static const std::vector<Entry> all = all_entries();
    return all;
}

const Entry* entry_of(const std::vector<std::string>& words) {
    for (const Entry& one : entries()) {
        for (const std::string_view program : one.programs)
            if (behind(words, program) > 0) return &one;
        for (const std::string_view program : one.common_programs)
            if (const std::size_t end = behind(words, program); end > 0 && are_marked(one, words, end)) return &one;
    }
    return nullptr;
}

const Entry* entry_named(std::string_view name) {
    const auto all = entries();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Entry& one) { return one.name == name; });
    return found == all.end() ? nullptr : &*found;
}

const Entry* entry_of_keys(const std::vector<std::string>& keys) {
    for (const Entry& one : entries())
        for (const std::string_view mark : one.marks)
            if (std::find(keys.begin(), keys.end(), mark) != keys.end()) return &one;
    return nullptr;
}

bool starts(const std::vector<std::string>& words, std::string_view program) { return behind(words, program) > 0; }

std::size_t words_before(const Entry& entry, const std::vector<std::string>& words) {
    for (const auto* const programs : {&entry.programs, &entry.common_programs})
        for (const std::string_view program : *programs)
            if (const std::size_t end = behind(words, program); end > 0) return end;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i].ends_with(".py")) return i + 1;
        if (words[i] == "-m" && i + 1 < words.size()) return i + 2;
    }
    return words.empty() ? 0 : 1;
}

const Entry* entry_of(Dialect dialect) {
    const auto all = entries();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Entry& one) {
        return one.programs.empty() && one.common_programs.empty() && one.dialect == dialect;
    });
    return found == all.end() ? nullptr : &*found;
}

}  // namespace pipeweaver::frameworks
