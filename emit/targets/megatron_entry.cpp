#include "emit/targets/megatron_entry.hpp"

#include "emit/targets/launch_script.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace pipeweaver::emit {

using launch::Launch;
using launch::VisionSizes;

namespace {

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

}  // namespace

// As of August 2026: model.py clears split fields by their names of 2024, and so hands the split on.
std::string megatron_entry(const Launch& of) {
    const std::string why = why_no_script(of);
    if (!why.empty()) return own_entry(why);
    const std::vector<std::string> encoders = encoders_of(of);
    return encoders.empty() ? "PIPEWEAVER_ENTRY=pretrain_gpt.py\n"
                            : multimodal_entry(types_of(of.vision.at(encoders.front())));
}

}  // namespace pipeweaver::emit
