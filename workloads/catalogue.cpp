#include "pipeweaver/workloads/catalogue.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "workloads/architecture.hpp"
#include "workloads/embedded.hpp"
#include "workloads/model_parts.hpp"
#include "workloads/public_models.hpp"

#include <algorithm>

namespace pipeweaver::workloads {

namespace {

struct Catalogue {
    JsonDocument document{"catalogue.json", embedded_catalogue()};
    std::vector<Architecture> architectures;
    std::vector<Json> models;
    std::vector<std::string> model_names;
    std::vector<Refused> refused;

    Catalogue() {
        document.require_format("pipeweaver-catalogue", 1);
        const Json root = document.root();
        root.only_keys({"format", "about", "architectures", "models", "refused"});
        for (const Json& entry : root.at("architectures").elements())
            architectures.push_back(parse_architecture(entry));
        models = root.at("models").elements();
        for (const Json& entry : models) model_names.push_back(entry.at("name").text());
        for (const Json& entry : root.at("refused").elements())
            refused.push_back({entry.at("name").text(), entry.at("reason").text()});
    }
};

// Constant once made: parsed at the first call, shared by all.
const Catalogue& catalogue() {
    static const Catalogue embedded;
    return embedded;
}

}  // namespace

std::span<const Architecture> architectures() { return catalogue().architectures; }

std::span<const Refused> refused() { return catalogue().refused; }

std::vector<std::string> model_names() {
    std::vector<std::string> names = catalogue().model_names;
    const auto in_public = public_model_names();
    names.insert(names.end(), in_public.begin(), in_public.end());
    return names;
}

const Architecture& architecture(std::string_view name) {
    std::vector<std::string> names;
    for (const auto& entry : architectures()) {
        if (entry.name == name) return entry;
        names.push_back(entry.name);
    }
    fail(ErrorKind::input, "{}", unknown("network", name, names));
}

Model model(std::string_view name) {
    const auto& names = catalogue().model_names;
    if (const auto found = std::find(names.begin(), names.end(), name); found != names.end())
        return parse_model_object(catalogue().models[static_cast<std::size_t>(found - names.begin())]);
    if (auto in_public = public_model(name)) return *std::move(in_public);
    for (const auto& entry : refused())
        if (entry.name == name) fail(ErrorKind::input, "the model '{}' cannot be used: {}", name, entry.reason);
    fail(ErrorKind::input, "{}", unknown("model", name, model_names()));
}

}  // namespace pipeweaver::workloads
