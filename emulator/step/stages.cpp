#include "pipeweaver/emulator/stages.hpp"

#include "pipeweaver/workloads/module_roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace pipeweaver::emulator {

bool trains(const workloads::Model& model, const LayerRange& part) {
    const auto& module = model.modules[part.module];
    const bool last = part.first + part.count == module.architecture.layers;
    return module.trainable || (last && workloads::trains_projector(model, part.module));
}

namespace {

using Kind = Recompute::Kind;

constexpr std::array<std::pair<std::string_view, Recompute>, 5> named{{{"none", Recompute::none},
                                                                       {"selective", Recompute::selective},
                                                                       {"half", Recompute::half},
                                                                       {"full", Recompute::full},
                                                                       {"offload", Recompute::offload}}};
constexpr std::string_view before_number = "blocks:";

}  // namespace

std::string name_of(Recompute recompute) {
    for (const auto& [name, setting] : named)
        if (setting == recompute) return std::string(name);
    return fmt::format("{}{}", before_number, recompute.layers);
}

std::optional<Recompute> recompute_named(std::string_view name) {
    for (const auto& [known, setting] : named)
        if (known == name) return setting;
    if (!name.starts_with(before_number)) return std::nullopt;
    name.remove_prefix(before_number.size());
    std::int64_t n = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), n);
    if (error != std::errc{} || end != name.data() + name.size() || n < 1) return std::nullopt;
    return Recompute::blocks(n);
}

std::vector<std::string> recompute_names() {
    std::vector<std::string> names;
    names.reserve(named.size() + 1);
    for (const auto& [name, setting] : named) names.emplace_back(name);
    names.push_back(fmt::format("{}N", before_number));
    return names;
}

std::int64_t recomputed_layers(std::int64_t count, Recompute recompute) {
    switch (recompute.kind) {
        case Kind::half:
            return (count + 1) / 2;
        case Kind::full:
        case Kind::selective:
            return count;
        case Kind::blocks:
            return std::min(count, recompute.layers);
        default:
            return 0;
    }
}

}  // namespace pipeweaver::emulator
