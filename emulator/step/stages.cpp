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
    return module.trains() || (last && workloads::trains_projector(model, part.module));
}

namespace {

using Kind = Recompute::Kind;

constexpr std::array<std::pair<std::string_view, Recompute>, 8> named{{{"none", Recompute::none},
                                                                       {"selective", Recompute::selective},
                                                                       {"core-attention", Recompute::core_attention},
                                                                       {"half", Recompute::half},
                                                                       {"full", Recompute::full},
                                                                       {"offload", Recompute::offload},
                                                                       {"encoders", Recompute::encoders},
                                                                       {"backbone", Recompute::backbone}}};
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

bool is_for_plans(Recompute recompute) {
    constexpr std::array<Kind, 4> emulated{Kind::offload, Kind::core_attention, Kind::encoders, Kind::backbone};
    return std::find(emulated.begin(), emulated.end(), recompute.kind) == emulated.end();
}

std::int64_t recomputed_layers(std::int64_t count, Recompute recompute, bool of_backbone) {
    switch (recompute.kind) {
        case Kind::half:
            return (count + 1) / 2;
        case Kind::full:
        case Kind::selective:
        case Kind::core_attention:
            return count;
        case Kind::blocks:
            return std::min(count, recompute.layers);
        case Kind::encoders:
            return of_backbone ? 0 : count;
        case Kind::backbone:
            return of_backbone ? count : 0;
        default:
            return 0;
    }
}

std::int64_t recomputed_layers(const workloads::Model& model, const LayerRange& part, Recompute recompute) {
    return recomputed_layers(part.count, recompute, part.module == model.backbone());
}

}  // namespace pipeweaver::emulator
