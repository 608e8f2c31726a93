#include "workloads/public_models.hpp"

#include "pipeweaver/base/json.hpp"
#include "workloads/embedded.hpp"
#include "workloads/hf_config.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::workloads {

namespace {

struct PublicModels {
    JsonDocument document{"public_models.json", embedded_public_models()};
    std::vector<Json> models;
    std::vector<std::string> names;

    PublicModels() {
        document.require_format("pipeweaver-public-models", 1);
        document.root().only_keys({"format", "about", "called", "models"});
        models = document.root().at("models").elements();
        for (const Json& entry : models) names.push_back(entry.at("name").text());
    }
};

// Constant once made.
const PublicModels& public_models() {
    static const PublicModels embedded;
    return embedded;
}

}  // namespace

std::vector<std::string> public_model_names() { return public_models().names; }

std::optional<Model> public_model(std::string_view name) {
    const auto& names = public_models().names;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return std::nullopt;
    const Json entry = public_models().models[static_cast<std::size_t>(found - names.begin())];
    entry.only_keys({"name", "repository", "confidence", "source", "config"});
    Model model = parse_hf_model(JsonDocument(*found, entry.at("config").raw().dump()), *found);
    model.confidence = entry.at("confidence").text();
    model.source = fmt::format("{}: {}; {}", entry.at("repository").text(), entry.at("source").text(), model.source);
    return model;
}

std::vector<std::pair<std::string, std::string>> names_in_public() {
    std::vector<std::pair<std::string, std::string>> names;
    for (const auto& [called, model] : public_models().document.root().at("called").members())
        names.emplace_back(called, model.text());
    return names;
}

}  // namespace pipeweaver::workloads
