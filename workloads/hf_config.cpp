#include "workloads/hf_config.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "workloads/fields.hpp"
#include "workloads/hf/begun.hpp"
#include "workloads/hf/decoders.hpp"
#include "workloads/hf/diffusers.hpp"
#include "workloads/hf/joined.hpp"
#include "workloads/hf/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pipeweaver::workloads {

namespace {

constexpr hf::Key model_type{"model_type"};
constexpr hf::Key class_name{"_class_name"};
constexpr hf::Key vision_part{"vision_config"};

Model text_model(Architecture llm) {
    Model model;
    model.modules = {{"llm", std::move(llm), PassUnit::microbatch, {Modality::text}, true}};
    return model;
}

std::vector<std::string> known_types() {
    auto types = hf::joined_types();
    const auto decoders = hf::decoder_types();
    types.insert(types.end(), decoders.begin(), decoders.end());
    return types;
}

// Kinds that are known, and have what no layer of ours is.
struct Unread {
    std::string_view type;
    std::string_view near;  // the known kind that is most alike
    std::string_view why;
};
constexpr std::string_view several_streams =
    "its blocks carry several streams (altup_num_inputs), and its image encoder is a net of convolutions";
constexpr std::string_view own_adapters =
    "adapters of each modality are part of it (vision_lora, speech_lora), beside a language model of the kind 'phi3'";
constexpr std::array unread{
    Unread{
        "deepseek_v4", "deepseek_v32",
        "its attention reads compressed keys (compress_ratios), and hyper-connections (hc_mult) carry several streams"},
    Unread{"gemma3n", "gemma4", several_streams},
    Unread{"gemma3n_text", "gemma4_text", several_streams},
    Unread{"phi4mm", "phi3", own_adapters},
    Unread{"phi4_multimodal", "phi3", own_adapters},
    Unread{"bagel", "qwen2",
           "its language model is there twice, for tokens that are read and tokens that are made, in one attention"},
    Unread{"HiDreamImageTransformer2DModel", "FluxTransformer2DModel",
           "its blocks have experts (num_routed_experts) beside two streams"}};

const Unread* find_unread(std::string_view type) {
    const auto found = std::find_if(unread.begin(), unread.end(), [&](const Unread& one) { return one.type == type; });
    return found == unread.end() ? nullptr : found;
}

// What a known kind's sister is started from.
std::string_view start_of(const std::string& known) {
    if (const hf::JoinedRow* joined = hf::find_joined(known)) return joined->start_from;
    if (const hf::DecoderRow* decoder = hf::find_decoder(known)) return decoder->start_from;
    return hf::find_diffusers(known)->start_from;
}

// A kind that is not read: the file begins a model file all the same (begun_hf_model).
[[noreturn]] void refuse_kind(const Json& kind, const hf::Part& root, std::string_view message) {
    kind.fail(fmt::format("{}; start from \"pipeweaver show {}\", or from what \"pipeweaver show\" prints of this file",
                          message, root.reading->start_from));
}

[[noreturn]] void refuse_unread(const Json& type, const hf::Part& root, const Unread& one) {
    root.reading->start_from = start_of(std::string(one.near));
    refuse_kind(type, root,
                fmt::format("'{}' is not read: {}; the nearest that is read is '{}'", one.type, one.why, one.near));
}

// What the sister of a known kind is started from.
std::string_view sister_of(const std::string& type) {
    const auto near = nearest(type, known_types());
    return near ? start_of(*near) : "qwen2.5-vl-7b";
}

Model model_of_type(const hf::Part& root, const Json& type, const hf::Processors& processors) {
    const std::string name = type.text();
    const hf::DecoderRow* decoder = hf::find_decoder(name);
    const hf::JoinedRow* joined = hf::find_joined(name);
    if (joined && (!decoder || given(root, vision_part))) return joined_model(root, *joined, processors);
    if (decoder) return text_model(language_model(root, root, *decoder));
    if (const Unread* known = find_unread(name)) refuse_unread(type, root, *known);
    root.reading->start_from = sister_of(name);
    refuse_kind(type, root, unknown("model type", name, known_types()));
}

// A release of its own calls its task a model_type.
const hf::DiffusersRow* diffusers_row(const hf::Part& root) {
    const auto name = given(root, class_name);
    return name ? hf::find_diffusers(name->text()) : nullptr;
}

Model convert(const hf::Part& root, const hf::Processors& processors) {
    if (const hf::DiffusersRow* row = diffusers_row(root)) return diffusion_model(root, *row);
    if (const auto type = given(root, model_type)) return model_of_type(root, *type, processors);
    const auto name = given(root, class_name);
    if (!name) refuse(root, "the key 'model_type' is missing, and '_class_name' of diffusers as well");
    if (const Unread* known = find_unread(name->text())) refuse_unread(*name, root, *known);
    refuse_kind(*name, root, unknown("class", name->text(), hf::diffusers_names()));
}

std::string billions(std::int64_t parameters) {
    return fmt::format("{:.2f} billion", static_cast<double>(parameters) / 1e9);
}

// "8.29 billion parameters: vit 0.63 billion, llm 7.62 billion, projectors 0.04 billion".
std::string parameters_of(const Model& model) {
    std::int64_t all = 0, projectors = 0;
    std::string parts;
    for (const Module& module : model.modules) {
        const std::int64_t own = all_parameters(module.architecture);
        all += own;
        parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", module.name, billions(own));
    }
    for (const ModelEdge& edge : model.edges) projectors += projector_parameters(edge);
    if (model.modules.size() == 1) return billions(all) + " parameters";
    return fmt::format("{} parameters: {}, projectors {}", billions(all + projectors), parts, billions(projectors));
}

// max_position_embeddings of the language model's part, or of the file; 0 where neither says it.
std::int64_t said_positions(const Json& json) {
    for (const std::string_view part : {"thinker_config", "text_config", "llm_config", "language_config"})
        if (const auto inside = json.find(part); inside && inside->is_object())
            if (const std::int64_t positions = said_positions(*inside); positions > 0) return positions;
    const auto said = json.find("max_position_embeddings");
    return said && !said->is_null() ? said->integer(1, most_tokens) : 0;
}

// "; images by preprocessor_config.json".
std::string files_of(const std::vector<JsonDocument>& processors) {
    std::string names;
    for (const JsonDocument& document : processors)
        names += (names.empty() ? "; images by " : ", ") + std::filesystem::path(document.name()).filename().string();
    return names;
}

// config.json, or that of the transformer in a folder of a diffusers pipeline.
std::filesystem::path file_of(const std::filesystem::path& path) {
    if (!std::filesystem::is_directory(path)) return path;
    const auto transformer = path / "transformer" / "config.json";
    return !std::filesystem::exists(path / "config.json") && std::filesystem::exists(transformer)
               ? transformer
               : path / "config.json";
}

}  // namespace

Model parse_hf_model(const JsonDocument& document, const std::string& name,
                     const std::vector<JsonDocument>& processors) {
    const Json json = document.root();
    hf::Reading reading{{}, "qwen2.5-vl-7b"};
    const hf::Part root{json, &reading, "the file"};
    Model model = convert(root, hf::processors_of(processors, reading));
    model.name = name;
    model.assumed = reading.assumed;
    model.most_positions = said_positions(json);
    const auto type = given(root, model_type);
    const auto* const row = diffusers_row(root);
    if (type && model.modules.size() > 1) model.family = type->text();
    model.source = fmt::format("Hugging Face configuration of type {}; {}",
                               type && !row ? type->text() : json.at("_class_name").text(), parameters_of(model));
    if (model.modules.size() > 1) model.source += files_of(processors);
    for (Module& module : model.modules)
        module.architecture.name = model.modules.size() == 1 ? name : fmt::format("{}-{}", name, module.name);
    // What our own model files must hold, these must as well.
    return as_read(model, document.name() + " (as a model file)");
}

namespace {

// After the file, or its folder where it is a config.json.
std::string name_of_model(const std::filesystem::path& file) {
    auto name = file.filename();
    while (name.has_extension() && (name.extension() == ".gz" || name.extension() == ".json")) name = name.stem();
    if (name == "config") {
        auto folder = std::filesystem::absolute(file).lexically_normal().parent_path();
        if (folder.filename() == "transformer" && folder.has_parent_path()) folder = folder.parent_path();
        if (!folder.filename().empty()) name = folder.filename();
    }
    return name.string();
}

}  // namespace

Model read_hf_model(const std::filesystem::path& path) {
    const auto file = file_of(path);
    return parse_hf_model(JsonDocument::read(file), name_of_model(file), hf::read_processors(file));
}

std::string begun_hf_model(const std::filesystem::path& path) {
    const auto file = file_of(path);
    const JsonDocument document = JsonDocument::read(file);
    hf::Reading reading;
    const hf::Part root{document.root(), &reading, "the file"};
    const auto type = given(root, model_type);
    if (diffusers_row(root)) return {};
    if (type && (hf::find_joined(type->text()) || hf::find_decoder(type->text()))) return {};
    if (!type && !given(root, class_name)) return {};
    return hf::begun_model(document.root(), name_of_model(file));
}

}  // namespace pipeweaver::workloads
