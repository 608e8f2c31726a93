// megatron: how a rung is launched, as a fragment of a launch script (megatron.sh: arrays of flags) and as keys of
// Megatron-Bridge's configuration (megatron.yaml).
//
// Source       Megatron-LM of August 2026: pretrain_gpt.py, examples/multimodal/config.py and model.py;
//              Megatron-Bridge: recipes.
#include "emit/targets/launch_script.hpp"
#include "pipeweaver/base/joined.hpp"
#include "pipeweaver/base/option_values.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/launch/megatron_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace pipeweaver::emit {

namespace fs = std::filesystem;
using launch::Flag;
using launch::Launch;
using launch::LaunchSetting;
using launch::Spelled;
using launch::SplitSpelling;
using launch::VisionSizes;

namespace {

std::string words(const std::vector<std::string>& flag) { return joined(flag, " ", quoted_for_shell); }

// "--name value --name value" of a spelling.
std::string words(const std::vector<Flag>& flags) {
    std::vector<std::string> all;
    for (const Flag& one : flags) {
        all.push_back(one.name);
        if (!one.value.empty()) all.push_back(one.value);
    }
    return words(all);
}

// Flags of examples/multimodal for what is frozen; its projection has none.
std::string frozen_flags(const Launch& of) {
    const launch::Tuned tuned = launch::tuned_of(of);
    if (tuned.adapters || !tuned.why_not.empty()) return {};
    std::string text;
    if (tuned.freezes_language) text += "  --freeze-LM\n";
    if (tuned.freezes_encoders) text += "  --freeze-ViT\n";
    if (tuned.freezes_projectors)
        text += "  " + comment("(examples/multimodal has no flag that freezes the projection)");
    return text;
}

std::string flag_array(const Launch& of, bool is_multimodal) {
    std::string text = "PIPEWEAVER_FLAGS=(\n";
    for (const LaunchSetting& one : launch::megatron_settings(of)) {
        if (one.flag.empty() && one.why.empty()) continue;  // the framework's default
        if (!one.why.empty()) text += "  " + comment(one.why);
        if (one.flag.empty())
            text += "  " + comment(fmt::format("({}: {})", one.key, one.value));
        else
            text += "  " + words(one.flag) + "\n";
    }
    return text + (is_multimodal ? frozen_flags(of) : "") + ")\n";
}

// What ms-swift trains of the model.
std::string swift_array(const Launch& of) {
    const std::vector<Flag> tuning = launch::swift_tuning(of);
    if (tuning.empty()) return {};
    return comment("ms-swift: what is trained; it freezes encoders unless told otherwise") +
           fmt::format("PIPEWEAVER_TUNING_SWIFT=({})\n", words(tuning));
}

std::string split_array(const SplitSpelling& one) {
    if (!one.spelled.says()) return comment(fmt::format("{}: cannot say it: {}", one.of, one.spelled.why_not));
    const bool is_even = one.spelled.flags.empty();
    return comment(one.of + (is_even ? "; nothing has to be said" : "")) +
           fmt::format("PIPEWEAVER_{}=({})\n", one.name, words(one.spelled.flags));
}

std::string split_arrays(const Launch& of) {
    if (of.split.ranks == 1) return comment("One pipeline rank has all layers.") + "PIPEWEAVER_SPLIT=()\n";
    std::string text = comment("The split among stages, in the words of each framework; take one.");
    for (const SplitSpelling& one : launch::split_spellings(of)) text += split_array(one);
    return text;
}

// Megatron-Bridge's KEY=VALUE, which are the keys of the configuration.
std::string overrides(const Launch& of) {
    std::string text = comment("Megatron-Bridge: the same and the split as overrides of a recipe (run_recipe.py)") +
                       "PIPEWEAVER_BRIDGE=(\n";
    for (const LaunchSetting& one : launch::recipe_settings(of))
        if (!one.key.empty()) text += "  " + quoted_for_shell(fmt::format("{}={}", one.key, one.value)) + "\n";
    return text + ")\n";
}

std::string mimo(const Launch& of) {
    const Spelled grids = launch::spell_mimo(of);
    if (!grids.says()) return comment("MegatronMIMO's grids: none: " + grids.why_not);
    std::string text = comment("MegatronMIMO's grids: images have a copy on each GPU, beside the language model");
    for (const Flag& one : grids.flags) text += fmt::format("export {}={}\n", one.name, one.value);
    return text;
}

// The line that checks our memory.
std::string fake_group(const Launch& of) {
    const std::size_t fullest = of.fullest();
    std::string text =
        comment("Our memory, checked on one GPU: Megatron-LM's fake process group plays the fullest.") +
        comment(fmt::format("It should allocate about {} (pipeline ranks: {}).", human(of.peak[fullest]),
                            joined(of.peak, ", ", [](Bytes peak) { return human(peak); }))) +
        comment(fmt::format("Its sequences are as long as the largest microbatch, padded to what the GPUs of a "
                            "sequence divide: --seq-length {}.",
                            launch::padded_tokens(of))) +
        comment(
            "  env \"${PIPEWEAVER_FULLEST[@]}\" python \"$PIPEWEAVER_ENTRY\" \"${PIPEWEAVER_FLAGS[@]}\" "
            "\"${PIPEWEAVER_SPLIT[@]}\" --fake-process-group ...");
    if (of.has_experts() && of.degrees.dispatches_by_node)
        text += comment("It does not go with --moe-token-dispatcher-type flex: take alltoall for it.");
    return text + fmt::format(
                      "PIPEWEAVER_FULLEST=(WORLD_SIZE={} RANK={} LOCAL_RANK=0 MASTER_ADDR=localhost "
                      "MASTER_PORT=29500 CUDA_DEVICE_MAX_CONNECTIONS=1)\n",
                      of.degrees.gpus(), launch::first_gpu(of.degrees, fullest));
}

// An encoder that examples/multimodal/config.py builds, by its name there. Images are scaled to one size.
struct VisionType {
    std::string_view name;
    VisionSizes sizes;
};

constexpr std::array vision_types{
    VisionType{"clip", {24, 1024, 4096}},       VisionType{"siglip", {27, 1152, 4304}},
    VisionType{"internvit", {45, 3200, 12800}}, VisionType{"internvit300M", {24, 1024, 4096}},
    VisionType{"radio", {32, 1280, 5120}},      VisionType{"radio-g", {40, 1536, 4096}},
    VisionType{"cradio-g", {40, 1536, 6144}},
};

std::vector<std::string_view> types_of(const VisionSizes& sizes) {
    std::vector<std::string_view> found;
    for (const VisionType& type : vision_types)
        if (type.sizes == sizes) found.push_back(type.name);
    return found;
}

std::vector<std::string> encoders_of(const Launch& of) {
    std::vector<std::string> encoders = of.dealt;
    for (const auto& one : of.split.encoders) encoders.push_back(one.module);
    return encoders;
}

// Why examples/multimodal does not build such a vision encoder.
std::string not_built(const std::string& name, const VisionSizes& sizes) {
    if (sizes.native_sizes) return fmt::format("{}, which takes images at their own sizes", name);
    return fmt::format("{} ({} layers, hidden {}, feed-forward {})", name, sizes.layers, sizes.hidden, sizes.ffn);
}

// What no script of Megatron-LM builds; empty: one does.
std::string why_no_script(const Launch& of) {
    const std::vector<std::string> encoders = encoders_of(of);
    if (kind_of(of, of.language, "llm") != "llm" || !of.split.generators.empty())
        return "models with a diffusion transformer or other generator";
    if (std::any_of(encoders.begin(), encoders.end(),
                    [&](const auto& one) { return kind_of(of, one, "vit") != "vit"; }))
        return "language models with encoders of other than images and clips";
    if (encoders.size() > 1) return fmt::format("models with {} vision encoders", encoders.size());
    if (encoders.empty()) return "";
    const auto sizes = of.vision.find(encoders.front());
    if (sizes == of.vision.end()) return fmt::format("{}, whose sizes launch.json does not say", encoders.front());
    return types_of(sizes->second).empty() ? not_built(encoders.front(), sizes->second) : "";
}

std::string own_entry(const std::string& why) {
    return comment(fmt::format("Megatron-LM has no entry script for {}:", why)) +
           comment("PIPEWEAVER_ENTRY is your own, which builds the model of Megatron Core's modules. Megatron-Bridge") +
           comment("has recipes of some (Qwen-VL, Qwen Omni, Gemma 3, GLM-4.5V, FLUX, Wan) for its") +
           comment("scripts/training/run_recipe.py, which takes PIPEWEAVER_BRIDGE.");
}

std::string multimodal_entry(const std::vector<std::string_view>& types) {
    return comment("builds the encoder on the first stage; models are those that its config.py names: here") +
           comment(fmt::format("--vision-model-type {}, and --language-model-type for the language model.",
                               fmt::join(types, " or "))) +
           comment("Its model.py hands the split on to the encoder: there vision_config and vision_projection_config") +
           comment("need pipeline_model_parallel_layout, num_layers_in_first_pipeline_stage and") +
           comment("num_layers_in_last_pipeline_stage None; --recompute-vision recomputes the encoder, too.") +
           "PIPEWEAVER_ENTRY=examples/multimodal/train.py\n";
}

// As of August 2026, model.py clears split fields by their names of 2024, and so hands the split on.
//
// Lines of a shell script: PIPEWEAVER_ENTRY with what it wants, or comments that say why no script of Megatron-LM
// builds the model and what does.
std::string megatron_entry(const Launch& of) {
    const std::string why = why_no_script(of);
    if (!why.empty()) return own_entry(why);
    const std::vector<std::string> encoders = encoders_of(of);
    return encoders.empty() ? "PIPEWEAVER_ENTRY=pretrain_gpt.py\n"
                            : multimodal_entry(types_of(of.vision.at(encoders.front())));
}

bool is_multimodal_entry(const Launch& of) { return why_no_script(of).empty() && !encoders_of(of).empty(); }

std::string script(const Launch& of) {
    std::string text =
        launch_head(of, "Flags of Megatron-LM") + "#\n" + comment("  source megatron.sh") +
        comment("  export CUDA_DEVICE_MAX_CONNECTIONS=1    # before Blackwell, with tensor or context parallelism") +
        comment("  torchrun ... \"$PIPEWEAVER_ENTRY\" \"${PIPEWEAVER_FLAGS[@]}\" \"${PIPEWEAVER_SPLIT[@]}\" ...") +
        "\n" + megatron_entry(of) + "\n" + flag_array(of, is_multimodal_entry(of)) + "\n";
    if (of.shapes > 1) text += expanding_segments(of) + "\n";
    for (const std::string& note : launch::recompute_words(of).notes) text += comment("Recomputation: " + note);
    if (!of.frozen.empty()) text += comment(fmt::format("Not trained: {}", fmt::join(of.frozen, ", ")));
    if (const std::string why = launch::tuned_of(of).why_not; !why.empty())
        text += comment("What is trained is your program's to say: " + why);
    return text + split_arrays(of) + swift_array(of) + overrides(of) + "\n" + mimo(of) + "\n" + fake_group(of);
}

std::string first_last(const Launch& of) {
    const auto said = launch::first_last_of(of.split);
    if (!said.why_not.empty())
        return "  " + comment("layers of the first and the last rank cannot say the split: " + said.why_not);
    std::string text = "  " + comment("in place of pipeline_model_parallel_layout:");
    if (said.counts.first)
        text += "  " + comment(fmt::format("num_layers_in_first_pipeline_stage: {}", *said.counts.first));
    if (said.counts.last)
        text += "  " + comment(fmt::format("num_layers_in_last_pipeline_stage: {}", *said.counts.last));
    if (!said.counts.first && !said.counts.last) text += "  " + comment("nothing: the split is even");
    return text;
}

std::string configuration(const Launch& of) {
    std::string text = launch_head(of, "Configuration of Megatron-Bridge");
    const auto all = launch::recipe_settings(of);
    for (const std::string section : {"model", "train", "ddp", "optimizer", "peft"}) {
        const std::string prefix = section + ".";
        std::string lines;
        for (const LaunchSetting& one : all) {
            if (!one.key.starts_with(prefix)) continue;
            if (!one.why.empty()) lines += "  " + comment(one.why);
            lines += fmt::format("  {}: {}\n", one.key.substr(prefix.size()), one.value);
        }
        if (section == "model" && of.split.ranks > 1) lines += first_last(of);
        if (!lines.empty()) text += fmt::format("{}:\n{}", section, lines);
    }
    return text;
}

}  // namespace

std::vector<FileToWrite> megatron_files(const Launch& launch, const fs::path& out) {
    return {{out / "megatron.sh", script(launch)}, {out / "megatron.yaml", configuration(launch)}};
}

}  // namespace pipeweaver::emit
