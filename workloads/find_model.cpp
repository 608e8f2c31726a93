// A model by what a user calls it: a catalogue name or one that people have for it, a model file, JSON itself, or a
// Hugging Face configuration.
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "workloads/hf_config.hpp"
#include "workloads/items.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>

namespace pipeweaver::workloads {

namespace {

// "Qwen/Qwen2.5-VL-7B-Instruct" where no such file is.
bool names_a_repository(const std::string& name) {
    std::error_code ignored;
    const std::filesystem::path path(name);
    const bool two_parts = std::distance(path.begin(), path.end()) == 2 && path.is_relative();
    return two_parts && !names_a_document(path.filename().string()) && !std::filesystem::exists(path, ignored) &&
           !std::filesystem::exists(path.parent_path(), ignored);
}

// "./my-model", as save_pretrained() writes it: services read no folders, and know paths by their '/'.
bool is_a_saved_model(const std::string& name) {
    std::error_code none;
    if (name.find('/') == std::string::npos) return false;
    const std::filesystem::path folder(name);
    return std::filesystem::exists(folder / "config.json", none) ||
           std::filesystem::exists(folder / "transformer" / "config.json", none);
}

Model model_of_repository(const std::string& repository, std::string_view option) {
    if (const std::string called = model_called(repository); !called.empty()) return model(called);
    const std::string near = model_like(repository);
    fail(ErrorKind::input,
         "{}: there is no file '{}', and nothing is downloaded: save the model's config.json and give hf:FILE, or "
         "take a name of `pipeweaver list models`{}",
         option, repository, near.empty() ? "" : fmt::format("; the nearest is '{}'", near));
}

}  // namespace

Model find_model(const std::string& name, std::string_view option) {
    if (is_a_document(name)) return parse_model(JsonDocument::given(std::string(option), name));
    const bool configuration = name.starts_with("hf:");
    const std::string file = configuration ? name.substr(3) : name;
    if (file.empty() && configuration)
        fail(ErrorKind::input, "{}: hf: names no file, allowed is a config.json behind it, or its folder", option);
    if (names_a_repository(file)) return model_of_repository(file, option);
    if (configuration || is_a_saved_model(name)) return read_hf_model(file);
    if (names_a_document(name)) return read_model(name);
    const std::string called = model_called(name);
    return model(called.empty() ? name : called);
}

std::string begun_model(const std::string& name) {
    const bool configuration = name.starts_with("hf:");
    const std::string file = configuration ? name.substr(3) : name;
    if (is_a_document(name) || names_a_repository(file)) return {};
    return configuration || is_a_saved_model(name) ? begun_hf_model(file) : std::string();
}

std::int64_t usual_latents(const Model& model) {
    constexpr std::int64_t usual = 16'384;
    const ItemRules rules(model);
    if (!rules.takes(Modality::video, false)) return usual;
    return std::max(usual, rules.video({model.video.max_seconds}, false).tokens);
}

}  // namespace pipeweaver::workloads
