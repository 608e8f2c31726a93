// Trainers in which every GPU trains the whole model, made of Hugging Face's: LLaMA-Factory and ms-swift.
//
// fsdp2       accelerate.yaml for `accelerate launch`, llama_factory.yaml for LLaMA-Factory below it; fsdp.json and
//             swift.sh (an array of flags) for ms-swift
// deepspeed   deepspeed.json, with swift.sh for ms-swift and llama_factory.yaml for LLaMA-Factory. GPUs of ms-swift may
//             share samples, by heads as far as there are keys for all (its sequence_parallel/sequence_parallel.py).
//
// Sources     accelerate 16cb6eb8 utils/dataclasses.py; transformers 00349ae8 trainer.py (checkpoints are FSDP's or the
//             trainer's, not both); modelscope/ms-swift 3602360a swift/config/{fsdp2,zero3}.json,
//             arguments/sft_args.py; hiyouga/LLaMA-Factory ff6d4d12 hparams/{model,data,finetuning}_args.py,
//             hparams/parser.py, examples/deepspeed/ds_z3_config.json; deepspeedai/DeepSpeed 0.19.6 (edaa7221)
//             runtime/zero/config.py.
#include "emit/targets/launch_script.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace pipeweaver::emit {

namespace fs = std::filesystem;
using emulator::Recompute;
using launch::Launch;

namespace {

std::optional<std::string> unsaid_layout(const Launch& of) {
    const auto& degrees = of.degrees;
    for (const auto& [name, degree] :
         {std::pair("tp", degrees.tp), std::pair("pp", degrees.pp), std::pair("ep", degrees.ep)})
        if (degree != 1) return fmt::format("every GPU trains the whole model, here {} is {}", name, degree);
    if (degrees.cp > 1 && (degrees.ring || !of.split.encoders.empty()))
        return "GPUs share samples of text alone, by exchanging heads";
    return std::nullopt;
}

std::optional<std::string> unsaid_model(const Launch& of) {
    if (kind_of(of, of.language, "llm") == "dit") return "its trainers train no diffusion transformers";
    if (!of.frozen.empty())
        return fmt::format("'{}' is not trained: what gathered frozen weights take is not in the plan's memory",
                           of.frozen.front());
    if (!of.bf16) return "weights are at work in 16 bits, here in 32";
    if (!of.fused_attention) return "samples are packed, which takes fused attention";
    return std::nullopt;
}

// A setting, with what it is for.
struct SettingLine {
    std::string name, value, about{};
};

std::vector<SettingLine> batch_settings(const Launch& of, const std::string& length) {
    return {{length, std::to_string(launch::padded_tokens(of)), "tokens of the largest microbatch"},
            {"per_device_train_batch_size", "1"},
            {"gradient_accumulation_steps", std::to_string(of.microbatches.front()), "microbatches of a GPU"}};
}

// Settings of Hugging Face's Trainer that both have. A fused optimizer makes no copy of what it works on.
std::vector<SettingLine> trainer_settings() { return {{"bf16", "true"}, {"optim", "adamw_torch_fused"}}; }

void add_settings(std::vector<SettingLine>& all, std::vector<SettingLine> more) {
    all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// Why trainers that are made of Hugging Face's do not run the launch, whoever shares out states; none: they do.
std::optional<std::string> why_not_sharded(const Launch& of) {
    if (auto why = unsaid_layout(of)) return why;
    if (auto why = unsaid_model(of)) return why;
    const auto recompute = emulator::recompute_named(of.recompute);
    if (recompute != Recompute::none && recompute != Recompute::full)
        return fmt::format("every block is recomputed or none, not {}", of.recompute);
    const auto [least, most] = std::minmax_element(of.microbatches.begin(), of.microbatches.end());
    if (*least != *most) return fmt::format("all GPUs take equally many microbatches, here {} to {}", *least, *most);
    return std::nullopt;
}

// The same where each GPU has samples of its own.
std::optional<std::string> why_not_apart(const Launch& of) {
    if (auto why = why_not_sharded(of)) return why;
    if (of.degrees.cp == 1) return std::nullopt;
    return fmt::format("every GPU has samples of its own, here {} share one", of.degrees.cp);
}

// The configuration of LLaMA-Factory, with its own checkpoints or none; `more` is said at the end of its head.
std::string llama_factory_yaml(const Launch& of, const std::string& more, bool checkpoints) {
    std::vector<SettingLine> all{{"stage", "sft"}, {"do_train", "true"}, {"finetuning_type", "full"}};
    if (!of.split.encoders.empty())
        add_settings(all, {{"freeze_vision_tower", "false"}, {"freeze_multi_modal_projector", "false"}});
    add_settings(all, {{"packing", "true"},
                       {"neat_packing", "true", "packed samples do not attend to each other"},
                       {"flash_attn", "fa2"}});
    add_settings(all, batch_settings(of, "cutoff_len"));
    add_settings(all, trainer_settings());
    all.push_back({"disable_gradient_checkpointing", checkpoints ? "false" : "true"});
    std::string text = launch_head(of, "Settings of LLaMA-Factory") + more;
    for (const SettingLine& one : all) {
        if (!one.about.empty()) text += comment(one.about);
        text += fmt::format("{}: {}\n", one.name, one.value);
    }
    return text;
}

// PIPEWEAVER_FLAGS of `swift sft`, to which `option` is given beside them, with its own checkpoints or none.
std::string swift_flags(const Launch& of, std::string_view option, bool checkpoints) {
    std::vector<SettingLine> all{{"tuner_type", "full"}, {"torch_dtype", "bfloat16"}};
    if (!of.split.encoders.empty()) add_settings(all, {{"freeze_vit", "false"}, {"freeze_aligner", "false"}});
    add_settings(all, {{"packing", "true"}, {"attn_impl", "flash_attn", "packing takes it"}});
    add_settings(all, batch_settings(of, "max_length"));
    add_settings(all, trainer_settings());
    all.push_back({"gradient_checkpointing", checkpoints ? "true" : "false"});
    if (of.degrees.cp > 1)
        all.push_back({"sequence_parallel_size", std::to_string(of.degrees.cp), "GPUs that share a sample"});
    std::string text =
        launch_head(of, "Flags of ms-swift") + "#\n" + comment("  source swift.sh") +
        comment(fmt::format("  NPROC_PER_NODE=... swift sft --model ... --dataset ... {} \"${{PIPEWEAVER_FLAGS[@]}}\"",
                            option)) +
        "\nPIPEWEAVER_FLAGS=(\n";
    for (const SettingLine& one : all) {
        if (!one.about.empty()) text += "  " + comment(one.about);
        text += fmt::format("  --{} {}\n", one.name, one.value);
    }
    return text + ")\n";
}

bool has_checkpoints(const Launch& of) { return emulator::recompute_named(of.recompute) == Recompute::full; }

bool fsdp_reshards(const Launch& of) { return of.degrees.zero == 3; }

std::string on_or_off(bool on) { return on ? "true" : "false"; }

std::string accelerate_yaml(const Launch& of) {
    return launch_head(of, "Configuration of accelerate") +
           comment("On several nodes say --num_machines, --machine_rank and --main_process_ip beside it.") +
           "compute_environment: LOCAL_MACHINE\n"
           "distributed_type: FSDP\n"
           "mixed_precision: bf16\n" +
           fmt::format("num_processes: {}\n", of.degrees.gpus()) +
           "fsdp_config:\n"
           "  fsdp_version: 2\n" +
           "  " + comment(fmt::format("zero {}", of.degrees.zero)) +
           fmt::format("  fsdp_reshard_after_forward: {}\n", on_or_off(fsdp_reshards(of))) +
           fmt::format("  fsdp_activation_checkpointing: {}\n", on_or_off(has_checkpoints(of))) +
           "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
           "  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
           "  fsdp_cpu_ram_efficient_loading: true\n"
           "  fsdp_offload_params: false\n";
}

std::string fsdp_json(const Launch& of) {
    const nlohmann::ordered_json json{{"fsdp", fsdp_reshards(of) ? "full_shard auto_wrap" : "shard_grad_op auto_wrap"},
                                      {"fsdp_config",
                                       {{"fsdp_version", 2},
                                        {"reshard_after_forward", fsdp_reshards(of)},
                                        {"auto_wrap_policy", "TRANSFORMER_BASED_WRAP"},
                                        {"cpu_ram_efficient_loading", true},
                                        {"state_dict_type", "SHARDED_STATE_DICT"},
                                        {"activation_checkpointing", has_checkpoints(of)}}}};
    return json.dump(1) + "\n";
}

// What the recipe of the target counts: two buckets of 16-bit gradients, since one is filled while the other is on its
// way, and with stage 3 as many gathered weights as DeepSpeed keeps unless told otherwise. One group of parameters has
// all, as stages 1 and 2 have it.
constexpr std::int64_t bucket_values = 200'000'000, live_values = 1'000'000'000, group_values = 1'000'000'000'000;

std::string deepspeed_json(const Launch& of) {
    nlohmann::ordered_json zero{{"stage", of.degrees.zero},
                                {"overlap_comm", true},
                                {"contiguous_gradients", true},
                                {"reduce_bucket_size", bucket_values}};
    if (of.degrees.zero == 3) {
        zero["sub_group_size"] = group_values;
        zero["stage3_prefetch_bucket_size"] = "auto";
        zero["stage3_param_persistence_threshold"] = "auto";
        zero["stage3_max_live_parameters"] = live_values;
        zero["stage3_max_reuse_distance"] = live_values;
        zero["stage3_gather_16bit_weights_on_model_save"] = true;
    } else {
        zero["allgather_bucket_size"] = bucket_values;
    }
    const nlohmann::ordered_json json{{"train_batch_size", "auto"},
                                      {"train_micro_batch_size_per_gpu", "auto"},
                                      {"gradient_accumulation_steps", "auto"},
                                      {"gradient_clipping", "auto"},
                                      {"zero_allow_untested_optimizer", true},
                                      {"bf16", {{"enabled", "auto"}}},
                                      {"zero_optimization", zero}};
    return json.dump(1) + "\n";
}

constexpr std::string_view yours =
    "Model, template, data and output_dir are yours: beside these, or behind the file as NAME=VALUE";

}  // namespace

std::optional<std::string> why_no_fsdp2(const Launch& of) {
    auto why = why_not_apart(of);
    if (!why && of.degrees.zero < 2)
        why = fmt::format("gradients are shared out at least, which zero {} does not", of.degrees.zero);
    return why;
}

std::vector<FileToWrite> fsdp2_files(const Launch& of, const fs::path& out) {
    const auto more = comment(fmt::format("{}.", yours)) + comment("Checkpoints are accelerate.yaml's.");
    return {{out / "accelerate.yaml", accelerate_yaml(of)},
            {out / "llama_factory.yaml", llama_factory_yaml(of, more, false)},
            {out / "fsdp.json", fsdp_json(of)},
            {out / "swift.sh", swift_flags(of, "--fsdp fsdp.json", false)}};
}

std::optional<std::string> why_no_deepspeed(const Launch& of) {
    auto why = why_not_sharded(of);
    if (!why && of.degrees.zero < 1) why = "it shares out the optimizer's states at least, which zero 0 does not";
    return why;
}

std::vector<FileToWrite> deepspeed_files(const Launch& of, const fs::path& out) {
    return {{out / "deepspeed.json", deepspeed_json(of)},
            {out / "swift.sh", swift_flags(of, "--deepspeed deepspeed.json", has_checkpoints(of))}};
}

std::optional<std::string> why_no_llama_factory(const Launch& of) { return why_not_apart(of); }

std::vector<FileToWrite> llama_factory_files(const Launch& of, const fs::path& out) {
    const auto more = comment(fmt::format("{},", yours)) + comment("as is deepspeed=deepspeed.json.");
    return {{out / "llama_factory.yaml", llama_factory_yaml(of, more, has_checkpoints(of))}};
}

}  // namespace pipeweaver::emit
