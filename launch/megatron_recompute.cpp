// Recomputation in the words of Megatron-LM and LoongForge.
#include "launch/written_setting.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/launch/megatron_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace pipeweaver::launch {

using emulator::Recompute;

namespace {

// Of the language model, or of an encoder or generator, whose layers all have them.
bool has_dense_feed_forwards(const Launch& launch) {
    const auto& letters = launch.letters;
    return !launch.split.encoders.empty() || !launch.split.generators.empty() || !launch.dealt.empty() ||
           letters.empty() || std::any_of(letters.begin(), letters.end(), [](const std::string& layer) {
               return layer.find('-') != std::string::npos;
           });
}

LaunchSetting granularity(const std::string& value, std::string why) {
    return setting_of(&MegatronLaunch::recompute, value, std::move(why));
}

RecomputeWords of_layers(const std::string& method, std::int64_t layers, std::string why) {
    const std::string number = std::to_string(layers);
    return {{granularity("full", std::move(why)), setting_of(&MegatronLaunch::recompute_method, method),
             setting_of(&MegatronLaunch::recompute_layers, number)},
            {},
            {}};
}

RecomputeWords of_modules(const std::vector<std::string>& modules, std::string why) {
    LaunchSetting setting =
        setting_of(&MegatronLaunch::recompute_modules, fmt::format("[{}]", fmt::join(modules, ", ")));
    setting.flag.back() = modules.front();
    setting.flag.insert(setting.flag.end(), modules.begin() + 1, modules.end());
    return {{granularity("selective", std::move(why)), std::move(setting)}, {}, {}};
}

RecomputeWords selective(const Launch& launch) {
    if (!launch.fused_attention)
        return of_modules({"core_attn"}, "attention is not fused: its scores are computed again");
    if (!has_dense_feed_forwards(launch))
        return of_modules({"layernorm", "moe_act"}, "outputs of norms and activation functions are computed again");
    return {{},
            {},
            "recompute selective leaves out what norms and activation functions give; Megatron's layernorm and moe_act "
            "keep what activation functions of dense feed-forwards give"};
}

// Half of the layers of each stage, rounded up: one number where all stages agree.
RecomputeWords half(const Launch& launch) {
    std::optional<std::int64_t> number;
    for (const std::int64_t layers : launch.split.layers) {
        if (layers == 0) continue;
        const std::int64_t here = (layers + 1) / 2;
        if (number && *number != here)
            return {{},
                    {},
                    fmt::format("recompute half is {} layers of one stage and {} of another; Megatron has one "
                                "number for all stages",
                                *number, here)};
        number = here;
    }
    return of_layers("block", number.value_or(1), "the first half of each stage's layers runs again");
}

RecomputeWords words_of(const Launch& launch, Recompute recompute) {
    switch (recompute.kind) {
        case Recompute::Kind::none:
            return {};
        case Recompute::Kind::half:
            return half(launch);
        case Recompute::Kind::full:
            return of_layers("uniform", 1, "of every layer only the input is kept");
        case Recompute::Kind::blocks:
            return of_layers(
                "block", recompute.layers,
                fmt::format("of the first {} layers of each stage only the input is kept", recompute.layers));
        case Recompute::Kind::selective:
            return selective(launch);
        case Recompute::Kind::second_products:
            return {{}, {}, "recompute second-products is torchtitan's checkpointing by operators; Megatron has none"};
        case Recompute::Kind::core_attention:
            return of_modules({"core_attn"}, "attention runs again from queries, keys and values");
        case Recompute::Kind::backbone: {
            RecomputeWords words =
                of_layers("uniform", 1, "of every layer of the language model only the input is kept");
            words.notes.emplace_back(
                "encoders are not recomputed: leave their own configuration without recomputation");
            return words;
        }
        case Recompute::Kind::encoders:
            return {{}, {"encoders are recomputed whole, in their own configuration: recompute_granularity full"}, {}};
        case Recompute::Kind::offload:
            break;
    }
    return {
        {}, {}, "recompute offload is a what-if of the emulator; Megatron has no layer-wise offload with a pipeline"};
}

// Layers of a stage that run again; none: not whole layers.
std::optional<std::int64_t> whole_layers(std::int64_t layers, Recompute recompute) {
    if (recompute.repeats_parts() || recompute.kind == Recompute::Kind::offload) return std::nullopt;
    return emulator::recomputed_layers(layers, recompute);
}

}  // namespace

RecomputeWords recompute_words(const Launch& launch) {
    if (!launch.recompute_of_ranks.empty())
        return {{}, {}, "recompute by-rank: Megatron has one setting for all ranks"};
    const auto setting = emulator::recompute_named(launch.recompute);
    RecomputeWords words = words_of(launch, setting.value_or(Recompute::none));
    const bool has_encoders = !launch.split.encoders.empty() || !launch.dealt.empty();
    const bool is_alike = launch.encoder_recompute == workloads::EncoderRecompute::as_backbone;
    if (const std::string& on = launch.encoder_switch; !on.empty()) {
        std::vector<std::string> flag{on.substr(0, on.find(' '))};
        if (on.size() > flag.front().size()) flag.push_back(on.substr(flag.front().size() + 1));
        const bool again = launch.encoder_recompute != workloads::EncoderRecompute::never;
        words.settings.push_back({std::move(flag), {}, {}, again ? "encoders, too" : "encoders do not run again"});
    } else if (has_encoders && is_alike && !words.settings.empty() && setting != Recompute::backbone)
        words.notes.emplace_back("encoders do the same, in their own configuration");
    return words;
}

Spelled spell_custom_recompute(const Launch& launch) {
    const Split& split = launch.split;
    if (split.ranks < 2) return {{}, "one rank has all layers; the list is of two ranks and more"};
    if (split.chunks() > 1) return {{}, "ranks have several chunks; the list has a number for each rank"};
    std::vector<std::int64_t> layers;
    layers.reserve(split.layers.size());
    for (std::size_t r = 0; r < split.layers.size(); ++r) {
        const std::string& name = launch.recompute_of_ranks.empty() ? launch.recompute : launch.recompute_of_ranks[r];
        const auto again = whole_layers(split.layers[r], emulator::recompute_named(name).value_or(Recompute::none));
        if (!again) return {{}, fmt::format("recompute {} is of parts of layers; the list is of whole ones", name)};
        layers.push_back(*again);
    }
    if (std::all_of(layers.begin(), layers.end(), [](std::int64_t one) { return one == 0; })) return {};
    return {{{flag_of(&MegatronLaunch::recompute), "full"},
             {flag_of(&MegatronLaunch::recompute_method), "block"},
             {flag_of(&MegatronLaunch::custom_recompute_layers), fmt::format("{}", fmt::join(layers, ","))}},
            {}};
}

}  // namespace pipeweaver::launch
