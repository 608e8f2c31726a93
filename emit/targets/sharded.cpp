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
#include "pipeweaver/frameworks/sharded.hpp"

#include "emit/targets/launch_script.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace pipeweaver::emit {

namespace fs = std::filesystem;
using emulator::Recompute;
using launch::Launch;

namespace {

// Of frameworks::entries().
constexpr std::string_view llama_factory = "LLaMA-Factory", sharded_swift = "ms-swift on DeepSpeed or FSDP";

std::optional<std::string> unsaid_layout(const Launch& of) {
    const auto& degrees = of.degrees;
    for (const auto& [name, degree] :
         {std::pair("tp", degrees.tp), std::pair("pp", degrees.pp), std::pair("ep", degrees.ep)})
        if (degree != 1) return fmt::format("every GPU trains the whole model, here {} is {}", name, degree);
    if (degrees.cp > 1 && (degrees.ring || !of.split.encoders.empty()))
        return "GPUs share samples of text alone, by exchanging heads";
    return std::nullopt;
}

using workloads::Adapters;

// Trainers find layers by their names; encoders may have such, too, and ms-swift freezes these with all-linear alone
// (3602360a swift/pipelines/train/tuner.py get_target_modules).
std::optional<std::string> unsaid_adapters(const Launch& of, const Adapters& adapters) {
    if (!adapters.apart)
        return "queries, keys and values, gate and up, each have a pair of adapters (--lora-apart), here one together";
    if (of.has_experts() && (adapters.up || adapters.down) && adapters.experts != workloads::ExpertAdapters::each)
        return "each routed expert has adapters (--lora-experts each), here they have others or none";
    if (!adapters.on_all() && !of.split.encoders.empty())
        return "beside encoders adapters go with all linear layers: names of some (--lora-targets) may be theirs, too";
    return std::nullopt;
}

std::optional<std::string> unsaid_tuning(const Launch& of) {
    const launch::Tuned tuned = launch::tuned_of(of);
    if (!tuned.why_not.empty()) return tuned.why_not;
    if (tuned.adapters)
        if (auto why = unsaid_adapters(of, *tuned.adapters)) return why;
    return std::nullopt;
}

std::optional<std::string> unsaid_model(const Launch& of) {
    if (kind_of(of, of.language, "llm") == "dit") return "its trainers train no diffusion transformers";
    if (auto why = unsaid_tuning(of)) return why;
    if (!of.bf16) return "weights are at work in 16 bits, here in 32";
    if (!of.fused_attention) return "samples are packed, which takes fused attention";
    return std::nullopt;
}

using ShardedSaid = frameworks::ShardedLaunch;

// A setting, with what it is for.
struct SettingLine {
    frameworks::ShardedMember member;
    std::string value, about{};
};

// The language model's linear layers with adapters, by Hugging Face's names; all: one word.
std::string adapted_layers_of(const Adapters& adapters, std::string_view all, std::string_view between) {
    if (adapters.on_all()) return std::string(all);
    std::vector<std::string_view> names;
    if (adapters.qkv) names.insert(names.end(), {"q_proj", "k_proj", "v_proj"});
    if (adapters.output) names.emplace_back("o_proj");
    if (adapters.up) names.insert(names.end(), {"gate_proj", "up_proj"});
    if (adapters.down) names.emplace_back("down_proj");
    return fmt::format("{}", fmt::join(names, between));
}

// What both trainers are told; a fused optimizer makes no copy of what it works on.
std::vector<SettingLine> common_settings(const Launch& of, bool checkpoints) {
    const launch::Tuned tuned = launch::tuned_of(of);
    const auto word = [](bool on) { return std::string(on ? "true" : "false"); };
    std::vector<SettingLine> all{{&ShardedSaid::tuner, tuned.adapters ? "lora" : "full"}};
    if (tuned.adapters) all.push_back({&ShardedSaid::lora_rank, std::to_string(tuned.adapters->rank)});
    if (!of.split.encoders.empty()) {
        all.push_back({&ShardedSaid::freeze_tower, word(tuned.freezes_encoders)});
        all.push_back({&ShardedSaid::freeze_projector, word(tuned.freezes_projectors)});
    }
    if (tuned.freezes_language) all.push_back({&ShardedSaid::freeze_language, "true"});
    for (SettingLine& one : std::vector<SettingLine>{
             {&ShardedSaid::packs, "true"},
             {&ShardedSaid::attention, "flash", "packing takes it"},
             {&ShardedSaid::length, std::to_string(launch::padded_tokens(of)), "tokens of the largest microbatch"},
             {&ShardedSaid::micro_batch, "1"},
             {&ShardedSaid::accumulation, std::to_string(of.microbatches.front()), "microbatches of a GPU"},
             {&ShardedSaid::bf16, "true"},
             {&ShardedSaid::optimizer, "adamw_torch_fused"},
             {&ShardedSaid::recompute, checkpoints ? "true" : "false"}})
        all.push_back(std::move(one));
    return all;
}

// In the words of a trainer, `line` of a name and a value.
template <class Line>
std::string lines_of(std::string_view trainer, const std::vector<SettingLine>& all, std::string_view indent,
                     Line line) {
    const frameworks::ShardedTrainer& of = *frameworks::sharded_trainer(trainer);
    std::string text;
    for (const SettingLine& one : all) {
        const frameworks::ShardedRow& row = *frameworks::sharded_row(of, frameworks::setting_of(of, one.member));
        if (!one.about.empty()) text += std::string(indent) + comment(one.about);
        text += line(row.setting, frameworks::word_of(row, one.value));
    }
    return text;
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
    std::vector<SettingLine> all{{&ShardedSaid::stage, "sft"},
                                 {&ShardedSaid::apart, "true", "packed samples do not attend to each other"}};
    for (SettingLine& one : common_settings(of, checkpoints)) all.push_back(std::move(one));
    if (const auto tuned = launch::tuned_of(of); tuned.adapters)
        all.push_back({&ShardedSaid::lora_targets, adapted_layers_of(*tuned.adapters, "all", ",")});
    return launch_head(of, "Settings of LLaMA-Factory") + more + "do_train: true\n" +
           lines_of(llama_factory, all, "", [](std::string_view name, const std::string& value) {
               return fmt::format("{}: {}\n", name, value);
           });
}

// PIPEWEAVER_FLAGS of `swift sft`, to which `option` is given beside them, with its own checkpoints or none.
std::string swift_flags(const Launch& of, std::string_view option, bool checkpoints) {
    std::vector<SettingLine> all = common_settings(of, checkpoints);
    all.push_back({&ShardedSaid::dtype, "bfloat16"});
    if (const auto tuned = launch::tuned_of(of); tuned.adapters)
        all.push_back({&ShardedSaid::lora_targets, adapted_layers_of(*tuned.adapters, "all-linear", " ")});
    if (of.degrees.cp > 1)
        all.push_back({&ShardedSaid::sequence, std::to_string(of.degrees.cp), "GPUs that share a sample"});
    const std::string head =
        launch_head(of, "Flags of ms-swift") + "#\n" + comment("  source swift.sh") +
        comment(fmt::format("  NPROC_PER_NODE=... swift sft --model ... --dataset ... {} \"${{PIPEWEAVER_FLAGS[@]}}\"",
                            option));
    return head + "\nPIPEWEAVER_FLAGS=(\n" +
           lines_of(sharded_swift, all, "  ",
                    [](std::string_view name, const std::string& value) {
                        return fmt::format("  --{} {}\n", name, value);
                    }) +
           ")\n" + (of.shapes > 1 ? "\n" + expanding_segments(of) : "");
}

// What a sort of file calls a member, in the words of what reads it: "zero_optimization.stage" of "deepspeed.".
std::string file_setting(std::string_view file, const frameworks::ShardedMember& member) {
    const auto name = frameworks::setting_of(*frameworks::sharded_trainer(llama_factory), member, file);
    return std::string(name.substr(file.size()));
}

bool has_checkpoints(const Launch& of) { return emulator::recompute_named(of.recompute) == Recompute::full; }

bool fsdp_reshards(const Launch& of) { return of.degrees.zero == 3; }

// A line of a file of accelerate.
std::string accelerate_line(const frameworks::ShardedMember& member, const std::string& value) {
    return fmt::format("{}: {}\n", file_setting("accelerate.", member), value);
}

std::string accelerate_line(const frameworks::ShardedMember& member, bool on) {
    return "  " + accelerate_line(member, std::string(on ? "true" : "false"));
}

std::string accelerate_yaml(const Launch& of) {
    return launch_head(of, "Configuration of accelerate") +
           comment("On several nodes say --num_machines, --machine_rank and --main_process_ip beside it.") +
           "compute_environment: LOCAL_MACHINE\n" + accelerate_line(&ShardedSaid::launcher, std::string("FSDP")) +
           accelerate_line(&ShardedSaid::launched_bf16, std::string("bf16")) +
           fmt::format("num_processes: {}\n", of.degrees.gpus()) +
           "fsdp_config:\n"
           "  fsdp_version: 2\n" +
           "  " + comment(fmt::format("zero {}", of.degrees.zero)) +
           accelerate_line(&ShardedSaid::reshards, fsdp_reshards(of)) +
           accelerate_line(&ShardedSaid::recompute_by_fsdp, has_checkpoints(of)) +
           "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
           "  fsdp_state_dict_type: SHARDED_STATE_DICT\n"
           "  fsdp_cpu_ram_efficient_loading: true\n" +
           accelerate_line(&ShardedSaid::offload_weights, false);
}

std::string fsdp_json(const Launch& of) {
    nlohmann::ordered_json settings;
    settings["fsdp_version"] = 2;
    settings[file_setting("fsdp_config.", &ShardedSaid::reshards)] = fsdp_reshards(of);
    settings["auto_wrap_policy"] = "TRANSFORMER_BASED_WRAP";
    settings["cpu_ram_efficient_loading"] = true;
    settings["state_dict_type"] = "SHARDED_STATE_DICT";
    settings[file_setting("fsdp_config.", &ShardedSaid::recompute_by_fsdp)] = has_checkpoints(of);
    const nlohmann::ordered_json json{{"fsdp", fsdp_reshards(of) ? "full_shard auto_wrap" : "shard_grad_op auto_wrap"},
                                      {"fsdp_config", std::move(settings)}};
    return json.dump(1) + "\n";
}

// What the recipe of the target counts: two buckets of 16-bit gradients, since one is filled while the other is on its
// way, and with stage 3 as many gathered weights as DeepSpeed keeps unless told otherwise. One group of parameters has
// all, as stages 1 and 2 have it.
constexpr std::int64_t bucket_values = 200'000'000, live_values = 1'000'000'000, group_values = 1'000'000'000'000;

using DeepspeedJson = nlohmann::ordered_json;

// A value of the file, by what it says.
DeepspeedJson& deepspeed_value(DeepspeedJson& file, const frameworks::ShardedMember& member) {
    std::string path = "/" + file_setting("deepspeed.", member);
    std::replace(path.begin(), path.end(), '.', '/');
    return file[DeepspeedJson::json_pointer(path)];
}

std::string deepspeed_json(const Launch& of) {
    DeepspeedJson json;
    json["train_batch_size"] = "auto";
    deepspeed_value(json, &ShardedSaid::said_batch) = "auto";
    deepspeed_value(json, &ShardedSaid::said_accumulation) = "auto";
    json["gradient_clipping"] = "auto";
    json["zero_allow_untested_optimizer"] = true;
    deepspeed_value(json, &ShardedSaid::said_bf16) = "auto";
    deepspeed_value(json, &ShardedSaid::zero) = of.degrees.zero;
    deepspeed_value(json, &ShardedSaid::two_buckets) = true;
    DeepspeedJson& zero = json["zero_optimization"];
    zero["contiguous_gradients"] = true;
    deepspeed_value(json, &ShardedSaid::reduce_bucket) = bucket_values;
    if (of.degrees.zero == 3) {
        deepspeed_value(json, &ShardedSaid::sub_group) = group_values;
        zero["stage3_prefetch_bucket_size"] = "auto";
        zero["stage3_param_persistence_threshold"] = "auto";
        deepspeed_value(json, &ShardedSaid::live_weights) = live_values;
        zero["stage3_max_reuse_distance"] = live_values;
        zero["stage3_gather_16bit_weights_on_model_save"] = true;
        if (of.state_on_host > 0) deepspeed_value(json, &ShardedSaid::offload_optimizer) = "cpu";
    } else {
        zero["allgather_bucket_size"] = bucket_values;
    }
    return json.dump(1) + "\n";
}

// With stages 1 and 2 gradients lie on the host, too.
std::optional<std::string> unsaid_offload(const Launch& of) {
    if (of.state_on_host == 0) return std::nullopt;
    if (of.degrees.zero < 3) return "states on the host take gradients with them below zero 3";
    if (of.state_on_gpu > 0) return "states lie on the host all together, here a part of them";
    return std::nullopt;
}

constexpr std::string_view yours =
    "Model, template, data and output_dir are yours: beside these, or behind the file as NAME=VALUE";

}  // namespace

std::optional<std::string> why_no_fsdp2(const Launch& of) {
    auto why = why_not_apart(of);
    if (!why && of.state_on_host > 0) why = "states lie on the host with weights alone, here without";
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
    if (!why) why = unsaid_offload(of);
    if (!why && of.degrees.zero < 1) why = "it shares out the optimizer's states at least, which zero 0 does not";
    return why;
}

std::vector<FileToWrite> deepspeed_files(const Launch& of, const fs::path& out) {
    return {{out / "deepspeed.json", deepspeed_json(of)},
            {out / "swift.sh", swift_flags(of, "--deepspeed deepspeed.json", has_checkpoints(of))}};
}

std::optional<std::string> why_no_llama_factory(const Launch& of) {
    auto why = why_not_apart(of);
    return why ? why : unsaid_offload(of);
}

std::vector<FileToWrite> llama_factory_files(const Launch& of, const fs::path& out) {
    const auto more = comment(fmt::format("{},", yours)) + comment("as is deepspeed=deepspeed.json.");
    return {{out / "llama_factory.yaml", llama_factory_yaml(of, more, has_checkpoints(of))}};
}

}  // namespace pipeweaver::emit
