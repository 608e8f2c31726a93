#include "workloads/architecture.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "workloads/fields.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace pipeweaver::workloads {

namespace {

// Far above every published network; far below what overflows when sizes are multiplied.
constexpr std::int64_t most_layers = 10'000;
constexpr std::int64_t most_width = 1'000'000;
constexpr std::int64_t most_heads = 10'000;
constexpr std::int64_t most_vocab = 100'000'000;
constexpr std::int64_t most_parameters = 1'000'000'000'000'000;  // 10^15

constexpr std::array module_kinds{ModuleKind::language_model,        ModuleKind::vision_encoder,
                                  ModuleKind::audio_encoder,         ModuleKind::text_encoder,
                                  ModuleKind::diffusion_transformer, ModuleKind::head};

std::string_view name_of(AttentionKind kind) {
    switch (kind) {
        case AttentionKind::dense:
            return "dense";
        case AttentionKind::windowed:
            return "windowed";
        case AttentionKind::latent:
            return "latent";
        case AttentionKind::factored:
            return "factored";
    }
    return "dense";
}

ModuleKind parse_kind(const Json& json) {
    const std::string text = json.one_of({"llm", "vit", "audio_encoder", "text_encoder", "dit", "head"});
    return *std::find_if(module_kinds.begin(), module_kinds.end(),
                         [&](ModuleKind kind) { return name_of(kind) == text; });
}

AttentionKind parse_attention_kind(const Json& json) {
    const auto object = json.find("kind");
    const std::string text = object ? object->one_of({"dense", "windowed", "latent", "factored"}) : "dense";
    for (const auto kind : {AttentionKind::windowed, AttentionKind::latent, AttentionKind::factored})
        if (name_of(kind) == text) return kind;
    return AttentionKind::dense;
}

void parse_windows(const Json& json, std::int64_t layers, Attention& attention) {
    attention.window = json.at("window").integer(1, most_tokens);
    const auto full = json.find("full_layers");
    if (!full) return;
    for (const Json& layer : full->elements()) attention.full_layers.push_back(layer.integer(0, layers - 1));
}

void parse_latent(const Json& json, Attention& attention) {
    if (const auto rank = json.find("q_lora_rank")) attention.q_lora_rank = rank->integer(1, most_width);
    attention.kv_lora_rank = json.at("kv_lora_rank").integer(1, most_width);
    attention.qk_nope_head_dim = json.at("qk_nope_head_dim").integer(1, most_width);
    attention.qk_rope_head_dim = json.at("qk_rope_head_dim").integer(1, most_width);
    attention.v_head_dim = json.at("v_head_dim").integer(1, most_width);
}

// A number of all layers, or a list of one for each.
void parse_sparsity(const Json& json, const Architecture& of, Attention& attention) {
    attention.sparsity_rank = integer_or(json, "sparsity_rank", 16, 1, 1'000);
    const auto said = json.find("sparsity");
    if (!said) return;
    if (of.kind != ModuleKind::diffusion_transformer)
        said->fail(fmt::format("is of diffusion transformers alone, and this is of kind '{}'", name_of(of.kind)));
    if (!said->is_array()) {
        attention.sparsity = {said->number(0, 1)};
        return;
    }
    for (const Json& one : said->elements()) attention.sparsity.push_back(one.number(0, 1));
    if (static_cast<std::int64_t>(attention.sparsity.size()) != of.layers)
        said->fail(fmt::format("has {} numbers, allowed are one or one for each of the {} layers",
                               attention.sparsity.size(), of.layers));
}

Attention parse_attention(const Json& json, const Architecture& of) {
    Attention attention;
    attention.kind = parse_attention_kind(json);
    attention.causal = boolean_or(json, "causal", of.kind == ModuleKind::language_model);
    attention.qk_norm = boolean_or(json, "qk_norm", false);
    attention.output_gate = boolean_or(json, "output_gate", false);
    switch (attention.kind) {
        case AttentionKind::dense:
            json.only_keys({"kind", "causal", "qk_norm", "output_gate", "sparsity", "sparsity_rank"});
            parse_sparsity(json, of, attention);
            break;
        case AttentionKind::windowed:
            json.only_keys({"kind", "causal", "qk_norm", "output_gate", "window", "full_layers"});
            parse_windows(json, of.layers, attention);
            break;
        case AttentionKind::latent:
            json.only_keys({"kind", "causal", "qk_norm", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim",
                            "qk_rope_head_dim", "v_head_dim"});
            parse_latent(json, attention);
            break;
        case AttentionKind::factored:
            json.only_keys({"kind", "causal", "qk_norm", "share_q_dim"});
            attention.share_q_dim = json.at("share_q_dim").integer(1, most_width);
            break;
    }
    return attention;
}

LinearAttention parse_linear(const Json& json) {
    json.only_keys({"kind", "key_heads", "value_heads", "key_dim", "value_dim", "convolution", "chunk"});
    const bool mamba = json.at("kind").one_of({"gated_delta", "mamba2"}) == "mamba2";
    LinearAttention linear;
    linear.kind = mamba ? LinearKind::mamba2 : LinearKind::gated_delta;
    linear.value_heads = json.at("value_heads").integer(1, most_heads);
    linear.key_heads = json.at("key_heads").integer(1, linear.value_heads);
    if (linear.value_heads % linear.key_heads != 0)
        json.at("key_heads")
            .fail(must_be(linear.key_heads, fmt::format("a divisor of value_heads ({})", linear.value_heads)));
    linear.key_dim = json.at("key_dim").integer(1, 10'000);
    linear.value_dim = json.at("value_dim").integer(1, 10'000);
    linear.convolution = integer_or(json, "convolution", 4, 1, 1'000);
    linear.chunk = integer_or(json, "chunk", mamba ? 128 : 64, 1, 100'000);
    return linear;
}

// What the letters of the pattern need.
void check_pattern(const Json& json, const Architecture& a) {
    const Json member = json.at("layer_pattern");
    const auto& pattern = a.layer_pattern;
    if (const auto other = pattern.find_first_not_of("LFPM*-E"); other != std::string::npos)
        member.fail(fmt::format("has a '{}': allowed are L, F, P, M, *, - and E", pattern[other]));
    const auto size = static_cast<std::int64_t>(pattern.size());
    if (size == 0 || a.layers % size != 0)
        member.fail(fmt::format("has {} letters: {} layers are no multiple of them", size, a.layers));
    const auto has = [&](std::string_view letters) { return pattern.find_first_of(letters) != std::string::npos; };
    if (has("LPM") != a.linear.has_value())
        member.fail(a.linear ? "has no L, P or M, which 'linear' is for" : "has an L, P or M, which needs 'linear'");
    const std::int64_t alone = std::count(pattern.begin(), pattern.end(), 'E') * (a.layers / size);
    if (alone > 0 && !a.moe) member.fail("has an E, which needs 'moe'");
    if (a.moe && !has("LFP") && a.moe->moe_layers != alone)
        member.fail(fmt::format("has {} layers of experts, 'moe' has {}", alone, a.moe->moe_layers));
    if (alone > 0 && has("LFP")) member.fail("has an E beside L, F or P, whose experts 'moe' says");
    if (json.find("cross_attention_layers")) json.at("cross_attention_layers").fail("goes with no layer_pattern");
}

void parse_hybrid(const Json& json, Architecture& a) {
    const auto linear = json.find("linear");
    if (linear) a.linear = parse_linear(*linear);
    if (const auto pattern = json.find("layer_pattern")) a.layer_pattern = pattern->text();
    if (linear || json.find("layer_pattern")) check_pattern(json, a);
}

MixtureOfExperts parse_experts(const Json& json, std::int64_t layers) {
    json.only_keys({"moe_layers", "first_layer", "every", "experts", "top_k", "expert_ffn", "shared_ffn", "latent"});
    MixtureOfExperts moe;
    moe.moe_layers = json.at("moe_layers").integer(1, layers);
    moe.every = integer_or(json, "every", 1, 1, layers);
    moe.first_layer = integer_or(json, "first_layer", layers - moe.moe_layers, 0, layers - 1);
    moe.experts = json.at("experts").integer(1, 100'000);
    moe.top_k = json.at("top_k").integer(1, moe.experts);
    moe.expert_ffn = json.at("expert_ffn").integer(1, most_width);
    moe.shared_ffn = integer_or(json, "shared_ffn", 0, 0, most_width);
    moe.latent = integer_or(json, "latent", 0, 1, most_width);
    if (moe.first_layer + (moe.moe_layers - 1) * moe.every >= layers)
        json.fail(fmt::format("{} MoE layers from layer {} on, every {}, do not fit into {} layers", moe.moe_layers,
                              moe.first_layer, moe.every, layers));
    return moe;
}

void parse_heads(const Json& json, Architecture& a) {
    a.heads = json.at("heads").integer(1, most_heads);
    a.kv_heads = integer_or(json, "kv_heads", a.heads, 1, a.heads);
    if (a.heads % a.kv_heads != 0)
        json.at("kv_heads").fail(must_be(a.kv_heads, fmt::format("a divisor of heads ({})", a.heads)));
    if (!json.find("head_dim") && a.hidden % a.heads != 0)
        json.fail(fmt::format("hidden ({}) is no multiple of heads ({}): head_dim is needed", a.hidden, a.heads));
    a.head_dim = integer_or(json, "head_dim", a.hidden / a.heads, 1, 10'000);
}

// A key that this kind of network does not have.
void refuse(const Json& json, std::initializer_list<std::string_view> keys, const Architecture& a) {
    for (const auto key : keys)
        if (const auto member = json.find(key))
            member->fail(fmt::format("a network of kind '{}' has none", name_of(a.kind)));
}

void parse_sizes(const Json& json, Architecture& a) {
    a.layers = json.at("layers").integer(1, most_layers);
    a.mmdit = boolean_or(json, "mmdit", false);
    if (a.mmdit)
        a.single_layers = integer_or(json, "single_layers", 0, 0, a.layers);
    else
        refuse(json, {"single_layers"}, a);
    a.hidden = json.at("hidden").integer(1, most_width);
    a.ffn = json.at("ffn").integer(1, most_width);
    if (a.kind == ModuleKind::head)
        refuse(json, {"heads", "kv_heads", "head_dim", "attention", "moe"}, a);
    else
        parse_heads(json, a);
    if (a.kind == ModuleKind::language_model || a.kind == ModuleKind::text_encoder)
        a.vocab = json.at("vocab").integer(1, most_vocab);
    else
        refuse(json, {"vocab", "tied_embeddings", "layer_embedding"}, a);
    a.layer_embedding = integer_or(json, "layer_embedding", 0, 1, most_width);
    a.gated = boolean_or(json, "gated", false);
    a.qkv_bias = boolean_or(json, "qkv_bias", false);
    a.tied_embeddings = boolean_or(json, "tied_embeddings", false);
    a.attention.causal = a.kind == ModuleKind::language_model;
    if (const auto attention = json.find("attention")) a.attention = parse_attention(*attention, a);
    if (const auto moe = json.find("moe")) a.moe = parse_experts(*moe, a.layers);
    if (a.kind == ModuleKind::language_model)
        parse_hybrid(json, a);
    else
        refuse(json, {"linear", "layer_pattern", "predicted_layers"}, a);
    if (a.layer_embedding > 0 && (a.moe || !a.layer_pattern.empty()))
        json.at("layer_embedding").fail("goes with neither moe nor layer_pattern");
    if (json.find("predicted_layers")) a.predicted_layers = json.at("predicted_layers").integer(0, a.layers - 1);
}

void parse_conditioning(const Json& json, Architecture& a) {
    a.cross_attention_dim = integer_or(json, "cross_attention_dim", 0, 1, most_width);
    if (json.find("cross_attention_layers")) {
        static_cast<void>(json.at("cross_attention_dim"));
        a.cross_attention_layers =
            json.at("cross_attention_layers").integer(1, std::max<std::int64_t>(1, a.layers / 2));
    }
    if (a.kind == ModuleKind::vision_encoder) {
        a.patch_size = json.at("patch_size").integer(1, 10'000);
        a.temporal_patch = integer_or(json, "temporal_patch", 1, 1, 1'000);
        a.image_size = integer_or(json, "image_size", 0, a.patch_size, 100'000);
    } else {
        refuse(json, {"patch_size", "temporal_patch", "image_size"}, a);
    }
    a.text_tokens = integer_or(json, "text_tokens", 0, 1, most_tokens);
    a.in_channels = integer_or(json, "in_channels", 0, 1, most_width);
    a.condition_dim = integer_or(json, "condition_dim", 0, 1, most_width);
    a.repeats = integer_or(json, "repeats", 1, 1, 1'000);
    if (a.kind != ModuleKind::diffusion_transformer) refuse(json, {"modulation", "embedders"}, a);
    a.modulation = integer_or(json, "modulation", 0, 1, most_parameters);
    a.embedders = integer_or(json, "embedders", 0, 1, most_parameters);
}

void parse_origin(const Json& json, Architecture& a) {
    const auto count = [&](std::string_view key) -> std::optional<std::int64_t> {
        const auto member = json.find(key);
        if (!member) return std::nullopt;
        return member->integer(1, most_parameters);
    };
    a.params_published = count("params_published");
    a.params_computed = count("params_computed");
    a.active_params_published = count("active_params_published");
    a.active_params_computed = count("active_params_computed");
    a.published_differs = text_or(json, "published_differs");
    a.confidence = text_or(json, "confidence");
    a.source = text_or(json, "source");
    a.note = text_or(json, "note");
}

// Adds a member unless it has its default.
template <class T>
void put(nlohmann::ordered_json& json, const char* key, const T& value, const T& otherwise) {
    if (value != otherwise) json[key] = value;
}

void put(nlohmann::ordered_json& json, const char* key, const std::optional<std::int64_t>& value) {
    if (value) json[key] = *value;
}

nlohmann::ordered_json attention_json(const Attention& t) {
    const std::int64_t none = 0;
    nlohmann::ordered_json json{{"kind", name_of(t.kind)}, {"causal", t.causal}};
    put(json, "qk_norm", t.qk_norm, false);
    put(json, "output_gate", t.output_gate, false);
    put(json, "window", t.window, none);
    if (!t.full_layers.empty()) json["full_layers"] = t.full_layers;
    put(json, "q_lora_rank", t.q_lora_rank);
    put(json, "kv_lora_rank", t.kv_lora_rank, none);
    put(json, "qk_nope_head_dim", t.qk_nope_head_dim, none);
    put(json, "qk_rope_head_dim", t.qk_rope_head_dim, none);
    put(json, "v_head_dim", t.v_head_dim, none);
    put(json, "share_q_dim", t.share_q_dim, none);
    if (t.sparsity.size() == 1) json["sparsity"] = t.sparsity.front();
    if (t.sparsity.size() > 1) json["sparsity"] = t.sparsity;
    put(json, "sparsity_rank", t.sparsity_rank, std::int64_t{16});
    return json;
}

nlohmann::ordered_json linear_json(const LinearAttention& linear) {
    return {{"kind", linear.kind == LinearKind::mamba2 ? "mamba2" : "gated_delta"},
            {"key_heads", linear.key_heads},
            {"value_heads", linear.value_heads},
            {"key_dim", linear.key_dim},
            {"value_dim", linear.value_dim},
            {"convolution", linear.convolution},
            {"chunk", linear.chunk}};
}

nlohmann::ordered_json experts_json(const MixtureOfExperts& moe) {
    nlohmann::ordered_json json{{"moe_layers", moe.moe_layers}, {"first_layer", moe.first_layer},
                                {"every", moe.every},           {"experts", moe.experts},
                                {"top_k", moe.top_k},           {"expert_ffn", moe.expert_ffn},
                                {"shared_ffn", moe.shared_ffn}};
    put(json, "latent", moe.latent, std::int64_t{0});
    return json;
}

void put_origin(nlohmann::ordered_json& json, const Architecture& a) {
    const std::string none;
    put(json, "params_published", a.params_published);
    put(json, "params_computed", a.params_computed);
    put(json, "active_params_published", a.active_params_published);
    put(json, "active_params_computed", a.active_params_computed);
    put(json, "published_differs", a.published_differs, none);
    put(json, "confidence", a.confidence, none);
    put(json, "source", a.source, none);
    put(json, "note", a.note, none);
}

}  // namespace

std::string_view name_of(ModuleKind kind) {
    switch (kind) {
        case ModuleKind::language_model:
            return "llm";
        case ModuleKind::vision_encoder:
            return "vit";
        case ModuleKind::audio_encoder:
            return "audio_encoder";
        case ModuleKind::text_encoder:
            return "text_encoder";
        case ModuleKind::diffusion_transformer:
            return "dit";
        case ModuleKind::head:
            return "head";
    }
    return "llm";
}

Architecture parse_architecture(const Json& json) {
    json.only_keys({"name",
                    "kind",
                    "layers",
                    "single_layers",
                    "mmdit",
                    "hidden",
                    "ffn",
                    "heads",
                    "kv_heads",
                    "head_dim",
                    "vocab",
                    "layer_embedding",
                    "gated",
                    "qkv_bias",
                    "tied_embeddings",
                    "attention",
                    "moe",
                    "linear",
                    "layer_pattern",
                    "predicted_layers",
                    "cross_attention_dim",
                    "cross_attention_layers",
                    "patch_size",
                    "temporal_patch",
                    "image_size",
                    "text_tokens",
                    "in_channels",
                    "condition_dim",
                    "repeats",
                    "modulation",
                    "embedders",
                    "params_published",
                    "params_computed",
                    "active_params_published",
                    "active_params_computed",
                    "published_differs",
                    "confidence",
                    "source",
                    "note"});
    Architecture a;
    a.name = json.at("name").text();
    a.kind = parse_kind(json.at("kind"));
    parse_sizes(json, a);
    parse_conditioning(json, a);
    parse_origin(json, a);
    return a;
}

nlohmann::ordered_json architecture_json(const Architecture& a) {
    const std::int64_t none = 0, one = 1;
    nlohmann::ordered_json json{{"name", a.name}, {"kind", name_of(a.kind)}, {"layers", a.layers}};
    put(json, "single_layers", a.single_layers, none);
    put(json, "mmdit", a.mmdit, false);
    json["hidden"] = a.hidden;
    json["ffn"] = a.ffn;
    put(json, "heads", a.heads, none);
    put(json, "kv_heads", a.kv_heads, none);
    put(json, "head_dim", a.head_dim, none);
    put(json, "vocab", a.vocab, none);
    put(json, "layer_embedding", a.layer_embedding, none);
    json["gated"] = a.gated;
    put(json, "qkv_bias", a.qkv_bias, false);
    put(json, "tied_embeddings", a.tied_embeddings, false);
    if (a.kind != ModuleKind::head) json["attention"] = attention_json(a.attention);
    if (a.moe) json["moe"] = experts_json(*a.moe);
    if (a.linear) json["linear"] = linear_json(*a.linear);
    if (!a.layer_pattern.empty()) json["layer_pattern"] = a.layer_pattern;
    put(json, "predicted_layers", a.predicted_layers, none);
    put(json, "cross_attention_dim", a.cross_attention_dim, none);
    put(json, "cross_attention_layers", a.cross_attention_layers, none);
    put(json, "patch_size", a.patch_size, none);
    put(json, "temporal_patch", a.temporal_patch, one);
    put(json, "image_size", a.image_size, none);
    put(json, "text_tokens", a.text_tokens, none);
    put(json, "in_channels", a.in_channels, none);
    put(json, "condition_dim", a.condition_dim, none);
    put(json, "repeats", a.repeats, one);
    put(json, "modulation", a.modulation, none);
    put(json, "embedders", a.embedders, none);
    put_origin(json, a);
    return json;
}

}  // namespace pipeweaver::workloads
