// What of a launch is trained, in the few words that frameworks have for it.
#include "pipeweaver/launch/launch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::launch {

namespace {

bool is_frozen(const Launch& launch, const std::string& module) {
    return std::find(launch.frozen.begin(), launch.frozen.end(), module) != launch.frozen.end();
}

std::vector<std::string> encoders_in(const Launch& launch) {
    std::vector<std::string> encoders = launch.dealt;
    for (const auto& one : launch.split.encoders) encoders.push_back(one.module);
    return encoders;
}

// Why not all that is not frozen has the same adapters; empty: it has, or none has any.
std::string why_not_alike(const Launch& launch, const std::vector<std::string>& encoders) {
    if (launch.adapters.empty()) return {};
    const auto& [first, adapters] = *launch.adapters.begin();
    std::vector<std::string> modules = encoders;
    modules.push_back(launch.language);
    for (const std::string& module : modules) {
        if (is_frozen(launch, module)) continue;
        const auto own = launch.adapters.find(module);
        if (own == launch.adapters.end())
            return fmt::format("'{}' is trained whole beside adapters of '{}'", module, first);
        workloads::Adapters alike = own->second;
        alike.experts = adapters.experts;  // of modules with experts alone
        if (!(alike == adapters)) return fmt::format("adapters of '{}' are not those of '{}'", module, first);
    }
    return launch.trains_projectors ? "a projector is trained whole beside adapters" : "";
}

std::string why_not_together(const Launch& launch, const std::vector<std::string>& encoders) {
    for (const std::string& module : encoders)
        if (is_frozen(launch, module) != is_frozen(launch, encoders.front()))
            return fmt::format("of '{}' and '{}' one is frozen, and encoders are frozen together", encoders.front(),
                               module);
    if (launch.trains_projectors && launch.freezes_projectors)
        return "some projectors are frozen, and they are frozen together";
    return {};
}

}  // namespace

Tuned tuned_of(const Launch& launch) {
    const std::vector<std::string> encoders = encoders_in(launch);
    Tuned tuned;
    tuned.freezes_encoders = !encoders.empty() && is_frozen(launch, encoders.front());
    tuned.freezes_language = is_frozen(launch, launch.language);
    tuned.freezes_projectors = launch.freezes_projectors || !launch.adapters.empty();
    if (!launch.adapters.empty()) {
        const auto own = launch.adapters.find(launch.language);
        tuned.adapters = own == launch.adapters.end() ? launch.adapters.begin()->second : own->second;
    }
    tuned.why_not = why_not_together(launch, encoders);
    if (tuned.why_not.empty()) tuned.why_not = why_not_alike(launch, encoders);
    if (!launch.split.generators.empty() && !tuned.is_usual() && tuned.why_not.empty())
        tuned.why_not =
            fmt::format("no setting is of '{}', behind the language model", launch.split.generators.front().module);
    return tuned;
}

}  // namespace pipeweaver::launch
