// What people call the models of the catalogue: the names of repositories, folders and releases.
#include "pipeweaver/base/json.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "workloads/embedded.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

namespace pipeweaver::workloads {

namespace {

// What releases of equal sizes have behind their name.
constexpr std::array<std::string_view, 15> release_endings{"-instruct", "-base", "-chat", "-thinking", "-pretrained",
                                                           "-it",       "-pt",   "-hf",   "-fp8",      "-bf16",
                                                           "-2507",     "-0324", "-0528", "-mpo",      "-diffusers"};

// The last part of a name in lower case, '-' for '.' and '_'.
std::string plain_name(std::string_view name) {
    name = name.substr(0, name.find_last_not_of('/') + 1);
    const auto slash = name.find_last_of('/');
    std::string plain = in_lower_case(slash == std::string_view::npos ? name : name.substr(slash + 1));
    std::replace_if(
        plain.begin(), plain.end(), [](char c) { return c == '.' || c == '_'; }, '-');
    return plain;
}

using Names = std::map<std::string, std::string, std::less<>>;

// Constant once made: plain name -> name in the catalogue.
const Names& plain_names() {
    static const Names all = [] {
        Names names;
        for (const auto& name : model_names()) names.emplace(plain_name(name), name);
        const JsonDocument document("public_models.json", embedded_public_models());
        document.require_format("pipeweaver-public-models", 1);
        document.root().only_keys({"format", "about", "called"});
        for (const auto& [called, model] : document.root().at("called").members()) names.emplace(called, model.text());
        return names;
    }();
    return all;
}

}  // namespace

std::string model_called(std::string_view name) {
    std::string plain = plain_name(name);
    while (!plain.empty()) {
        if (const auto known = plain_names().find(plain); known != plain_names().end()) return known->second;
        const auto* const ending = std::find_if(release_endings.begin(), release_endings.end(),
                                                [&](std::string_view one) { return plain.ends_with(one); });
        if (ending == release_endings.end()) break;
        plain.resize(plain.size() - ending->size());
    }
    return {};
}

}  // namespace pipeweaver::workloads
