#include "workloads/hf_config.hpp"

#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::workloads {

namespace {

// Far above every published network; contradictions are found when the finished model is checked.
constexpr std::int64_t most = 100'000'000;

// A member that is there and not null: null stands for the default in these files.
std::optional<Json> given(const Json& object, std::string_view key) {
    auto member = object.find(key);
    return member && !member->is_null() ? member : std::nullopt;
}

std::int64_t needed(const Json& object, std::string_view key) { return object.at(key).integer(1, most); }

std::int64_t size_or(const Json& object, std::string_view key, std::int64_t otherwise) {
    const auto member = given(object, key);
    return member ? member->integer(1, most) : otherwise;
}

bool flag(const Json& object, std::string_view key, bool otherwise) {
    const auto member = given(object, key);
    return member ? member->boolean() : otherwise;
}

// "image_size": 448, or [448, 448].
std::int64_t square(const Json& object, std::string_view key) {
    const Json side = object.at(key);
    if (!side.is_array()) return side.integer(1, most);
    if (side.size() != 2 || side[0].integer(1, most) != side[1].integer(1, most))
        side.fail("is no square, only squares are read");
    return side[0].integer(1, most);
}

std::int64_t divided(const Json& object, std::string_view what, std::int64_t a, std::string_view by, std::int64_t b) {
    if (a % b != 0) object.fail(fmt::format("{} ({}) is no multiple of {} ({})", what, a, by, b));
    return a / b;
}

// Kinds that are asked for and not read, and what they would need.
struct Missing {
    std::string_view part_of_type;
    std::string_view why;
};
constexpr std::array missing{
    Missing{"moe", "mixtures of experts are not read"},
    Missing{"mixtral", "mixtures of experts are not read"},
    Missing{"deepseek", "latent attention and mixtures of experts are not read"},
    Missing{"kimi", "latent attention and mixtures of experts are not read"},
    Missing{"mllama", "added cross-attention layers are not read"},
    Missing{"llama4", "mixtures of experts and chunked attention are not read"},
    Missing{"gemma", "layers that alternate between sliding windows and full attention are not read"},
    Missing{"gpt_oss", "mixtures of experts and sliding windows are not read"},
    Missing{"qwen3_vl", "encoders whose inner layers feed the language model are not read"},
};

[[noreturn]] void refuse(const Json& place, const std::string& type, const std::vector<std::string>& known) {
    for (const Missing& kind : missing)
        if (type.find(kind.part_of_type) != std::string::npos)
            place.fail(fmt::format("the model type '{}' cannot be used: {}", type, kind.why));
    place.fail(unknown("model type", type, known));
}

enum class Decoder { llama, qwen2, qwen3 };

Architecture language_model(const Json& json, const Json& root, Decoder like) {
    Architecture a;
    a.kind = ModuleKind::language_model;
    a.layers = needed(json, "num_hidden_layers");
    a.hidden = needed(json, "hidden_size");
    a.ffn = needed(json, "intermediate_size");
    a.heads = needed(json, "num_attention_heads");
    a.kv_heads = size_or(json, "num_key_value_heads", a.heads);
    a.vocab = needed(json, "vocab_size");
    if (given(json, "head_dim"))
        a.head_dim = needed(json, "head_dim");
    else if (like == Decoder::qwen3)
        a.head_dim = 128;
    else
        a.head_dim = divided(json, "hidden_size", a.hidden, "num_attention_heads", a.heads);
    a.gated = true;
    a.qkv_bias = like == Decoder::qwen2 || flag(json, "attention_bias", false);
    a.attention.qk_norm = like == Decoder::qwen3;
    a.tied_embeddings = flag(json, "tie_word_embeddings", flag(root, "tie_word_embeddings", false));
    if (flag(json, "use_sliding_window", false))
        json.at("use_sliding_window").fail("is true; sliding windows of language models are not read");
    return a;
}

Architecture qwen_encoder(const Json& json, bool windows) {
    Architecture a;
    a.kind = ModuleKind::vision_encoder;
    a.layers = needed(json, "depth");
    a.heads = a.kv_heads = needed(json, "num_heads");
    a.hidden = needed(json, windows ? "hidden_size" : "embed_dim");
    a.gated = windows;
    a.ffn = windows ? needed(json, "intermediate_size")
                    : std::llround(json.at("mlp_ratio").number(0.01, 1000) * static_cast<double>(a.hidden));
    a.head_dim = divided(json, windows ? "hidden_size" : "embed_dim", a.hidden, "num_heads", a.heads);
    a.patch_size = needed(json, "patch_size");
    a.temporal_patch = size_or(json, "temporal_patch_size", 2);
    a.attention.causal = false;
    if (!windows) return a;
    a.attention.kind = AttentionKind::windowed;
    const std::int64_t side = divided(json, "window_size", needed(json, "window_size"), "patch_size", a.patch_size);
    a.attention.window = side * side;
    for (const Json& layer : json.at("fullatt_block_indexes").elements())
        a.attention.full_layers.push_back(layer.integer(0, a.layers - 1));
    return a;
}

Architecture intern_encoder(const Json& json) {
    Architecture a;
    a.kind = ModuleKind::vision_encoder;
    a.layers = needed(json, "num_hidden_layers");
    a.hidden = needed(json, "hidden_size");
    a.ffn = needed(json, "intermediate_size");
    a.heads = a.kv_heads = needed(json, "num_attention_heads");
    a.head_dim = divided(json, "hidden_size", a.hidden, "num_attention_heads", a.heads);
    a.patch_size = square(json, "patch_size");
    a.image_size = square(json, "image_size");
    a.attention.causal = false;
    a.attention.qk_norm = flag(json, "qk_normalization", flag(json, "use_qk_norm", false));
    return a;
}

Module module_of(std::string name, Architecture architecture, PassUnit unit, Modality modality) {
    return {std::move(name), std::move(architecture), unit, {modality}, true};
}

Model text_model(Architecture llm) {
    Model model;
    model.modules = {module_of("llm", std::move(llm), PassUnit::microbatch, Modality::text)};
    return model;
}

// Encoder and language model, joined by a merge of `merge` x `merge` patches and two linear layers.
Model vision_model(Architecture vit, Architecture llm, std::int64_t merge, std::int64_t projector_hidden) {
    Model model;
    model.image.patch = vit.patch_size;
    model.image.merge = merge;
    model.edges = {{.from = 0,
                    .to = 1,
                    .token_reduction = merge * merge,
                    .projector_in = merge * merge * vit.hidden,
                    .projector_out = llm.hidden,
                    .projector_hidden = projector_hidden}};
    model.modules = {module_of("vit", std::move(vit), PassUnit::items, Modality::image),
                     module_of("llm", std::move(llm), PassUnit::microbatch, Modality::text)};
    model.assumed = {"videos are not read"};
    return model;
}

Model qwen_vision_model(const Json& root, bool windows) {
    const Json text = given(root, "text_config").value_or(root);
    const Json vision = root.at("vision_config");
    const auto vit = qwen_encoder(vision, windows);
    const std::int64_t merge = vision.find("spatial_merge_size") ? vision.at("spatial_merge_size").integer(1, 100) : 2;
    Model model = vision_model(vit, language_model(text, root, Decoder::qwen2), merge, merge * merge * vit.hidden);
    // The range that the model cards of Qwen2-VL and Qwen2.5-VL recommend; the preprocessor's own is wider.
    model.image.min_tokens = 256;
    model.image.max_tokens = 1280;
    model.assumed.emplace_back("images take 256 to 1280 tokens");
    return model;
}

Decoder intern_decoder(const Json& json) {
    const Json type = json.at("model_type");
    const std::string name = type.text();
    if (name == "qwen2") return Decoder::qwen2;
    if (name == "qwen3") return Decoder::qwen3;
    if (name == "llama" || name == "internlm2") return Decoder::llama;
    refuse(type, name, {"qwen2", "qwen3", "llama", "internlm2"});
}

Model intern_vision_model(const Json& root, std::string_view language_key) {
    const Json text = root.at(language_key);
    const auto vit = intern_encoder(root.at("vision_config"));
    const double ratio = given(root, "downsample_ratio") ? root.at("downsample_ratio").number(0.01, 1) : 0.5;
    const std::int64_t merge = std::llround(1 / ratio);
    auto llm = language_model(text, root, intern_decoder(text));
    const std::int64_t projector_hidden = llm.hidden;
    Model model = vision_model(vit, std::move(llm), merge, projector_hidden);
    model.image.fixed_pixels = size_or(root, "force_image_size", vit.image_size);
    model.assumed.emplace_back("every image is one tile: the tiling of large images is not represented");
    return model;
}

Model convert(const Json& root) {
    const Json type = root.at("model_type");
    const std::string name = type.text();
    if (name == "llama") return text_model(language_model(root, root, Decoder::llama));
    if (name == "qwen2") return text_model(language_model(root, root, Decoder::qwen2));
    if (name == "qwen3") return text_model(language_model(root, root, Decoder::qwen3));
    if (name == "qwen2_vl") return qwen_vision_model(root, false);
    if (name == "qwen2_5_vl") return qwen_vision_model(root, true);
    if (name == "internvl_chat") return intern_vision_model(root, "llm_config");
    if (name == "internvl") return intern_vision_model(root, "text_config");
    refuse(type, name, {"llama", "qwen2", "qwen3", "qwen2_vl", "qwen2_5_vl", "internvl_chat", "internvl"});
}

// What changes the model much where its key is missing, or misspelled.
void note_defaults(const Json& root, Model& model) {
    const auto nested = given(root, "text_config") ? given(root, "text_config") : given(root, "llm_config");
    if (!given(nested.value_or(root), "num_key_value_heads"))
        model.assumed.emplace_back("as many key and value heads as attention heads: there is no num_key_value_heads");
}

}  // namespace

Model parse_hf_model(const JsonDocument& document, const std::string& name) {
    const Json root = document.root();
    Model model = convert(root);
    note_defaults(root, model);
    model.name = name;
    model.source = fmt::format("Hugging Face configuration of type {}", root.at("model_type").text());
    for (Module& module : model.modules)
        module.architecture.name = model.modules.size() == 1 ? name : fmt::format("{}-{}", name, module.name);
    // What our own model files must hold, these must as well.
    return parse_model(JsonDocument(document.name() + " (as a model file)", to_json(model)));
}

Model read_hf_model(const std::filesystem::path& path) {
    const auto file = std::filesystem::is_directory(path) ? path / "config.json" : path;
    auto name = file.filename();
    while (name.has_extension() && (name.extension() == ".gz" || name.extension() == ".json")) name = name.stem();
    if (name == "config") {
        const auto folder = std::filesystem::absolute(file).lexically_normal().parent_path().filename();
        if (!folder.empty()) name = folder;
    }
    return parse_hf_model(JsonDocument::read(file), name.string());
}

}  // namespace pipeweaver::workloads
