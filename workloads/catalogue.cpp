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
    std::vector<std::string> model_names;  // theirs, then those of public configurations
    std::vector<Refused> refused;

    Catalogue() {
        document.require_format("pipeweaver-catalogue", 1);
        const Json root = document.root();
        root.only_keys({"format", "about", "architectures", "models", "refused"});
        for (const Json& entry : root.at("architectures").elements())
            architectures.push_back(parse_architecture(entry));
        models = root.at("models").elements();
        for (const Json& entry : models) model_names.push_back(entry.at("name").text());
        const auto in_public = public_model_names();
        model_names.insert(model_names.end(), in_public.begin(), in_public.end());
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

std::vector<std::string> model_names() { return catalogue().model_names; }

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
    const auto found = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (found < catalogue().models.size()) return parse_model_object(catalogue().models[found]);
    if (auto in_public = public_model(name)) return *std::move(in_public);
    for (const auto& entry : refused())
        if (entry.name == name) fail(ErrorKind::input, "the model '{}' cannot be used: {}", name, entry.reason);
    fail(ErrorKind::input, "{}", unknown("model", name, names));
}

}  // namespace pipeweaver::workloads
