#include "emit/targets/sharded_files.hpp"

#include "emit/targets/launch_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace pipeweaver::emit {

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

}  // namespace

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

std::optional<std::string> why_not_apart(const Launch& of) {
    if (auto why = why_not_sharded(of)) return why;
    if (of.degrees.cp == 1) return std::nullopt;
    return fmt::format("every GPU has samples of its own, here {} share one", of.degrees.cp);
}

std::string llama_factory_yaml(const Launch& of, const std::string& head, bool checkpoints) {
    std::vector<SettingLine> all{{"stage", "sft"}, {"do_train", "true"}, {"finetuning_type", "full"}};
    if (!of.split.encoders.empty())
        add_settings(all, {{"freeze_vision_tower", "false"}, {"freeze_multi_modal_projector", "false"}});
    add_settings(all, {{"packing", "true"},
                       {"neat_packing", "true", "packed samples do not attend to each other"},
                       {"flash_attn", "fa2"}});
    add_settings(all, batch_settings(of, "cutoff_len"));
    add_settings(all, trainer_settings());
    all.push_back({"disable_gradient_checkpointing", checkpoints ? "false" : "true"});
    std::string text = head;
    for (const SettingLine& one : all) {
        if (!one.about.empty()) text += comment(one.about);
        text += fmt::format("{}: {}\n", one.name, one.value);
    }
    return text;
}

std::string swift_flags(const Launch& of, const std::string& head, bool checkpoints) {
    std::vector<SettingLine> all{{"tuner_type", "full"}, {"torch_dtype", "bfloat16"}};
    if (!of.split.encoders.empty()) add_settings(all, {{"freeze_vit", "false"}, {"freeze_aligner", "false"}});
    add_settings(all, {{"packing", "true"}, {"attn_impl", "flash_attn", "packing takes it"}});
    add_settings(all, batch_settings(of, "max_length"));
    add_settings(all, trainer_settings());
    all.push_back({"gradient_checkpointing", checkpoints ? "true" : "false"});
    if (of.degrees.cp > 1)
        all.push_back({"sequence_parallel_size", std::to_string(of.degrees.cp), "GPUs that share a sample"});
    std::string text = head + "PIPEWEAVER_FLAGS=(\n";
    for (const SettingLine& one : all) {
        if (!one.about.empty()) text += "  " + comment(one.about);
        text += fmt::format("  --{} {}\n", one.name, one.value);
    }
    return text + ")\n";
}

}  // namespace pipeweaver::emit
