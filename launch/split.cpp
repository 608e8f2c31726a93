#include "pipeweaver/launch/split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pipeweaver::launch {

using partition::ModuleLayers;

namespace {

// The first stage beside `usual` that has layers of the module.
std::optional<std::size_t> elsewhere(const ModuleLayers& module, std::size_t usual) {
    for (std::size_t s = 0; s < module.layers.size(); ++s)
        if (s != usual && module.layers[s] > 0) return s;
    return std::nullopt;
}

}  // namespace

std::int64_t Split::depth() const { return std::accumulate(layers.begin(), layers.end(), std::int64_t{0}); }

Split split_of(const workloads::Model& model, const partition::SaidLayers& said, std::int64_t ranks) {
    Split split{.ranks = ranks};
    const std::size_t backbone = model.backbone();
    for (const ModuleLayers& one : said) {
        const auto at = std::find_if(model.modules.begin(), model.modules.end(),
                                     [&](const workloads::Module& module) { return module.name == one.module; });
        const auto m = one.module.empty() ? backbone : static_cast<std::size_t>(at - model.modules.begin());
        if (m < backbone)
            split.encoders.push_back(one);
        else if (m > backbone)
            split.generators.push_back(one);
        else
            split.layers = one.layers;
    }
    return split;
}

std::optional<std::string> why_not_usual(const Split& split) {
    for (const ModuleLayers& one : split.encoders)
        if (const auto stage = elsewhere(one, 0))
            return fmt::format("stage {} has {} layers of {}; encoders are built whole on the first stage", *stage,
                               one.layers[*stage], one.module);
    for (const ModuleLayers& one : split.generators)
        if (const auto stage = elsewhere(one, split.layers.size() - 1))
            return fmt::format("stage {} has {} layers of {}; what follows the language model is built on the last",
                               *stage, one.layers[*stage], one.module);
    return std::nullopt;
}

}  // namespace pipeweaver::launch
