// Which target launches a way.
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/way.hpp"
#include "pipeweaver/workloads/built_model.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

// Encoders whole on the first stage, and what follows the backbone whole on the last.
bool has_whole_encoders(const Way& way) {
    const std::size_t backbone = way.setup->model.backbone();
    if (way.partition.chains.size() != 1 || !phase_modules(way.partition).empty()) return false;
    const auto& stages = way.partition.chains.front().stages;
    for (std::size_t s = 0; s < stages.size(); ++s)
        for (const LayerRange& part : stages[s].parts)
            if ((part.module < backbone && s > 0) || (part.module > backbone && s + 1 < stages.size())) return false;
    return true;
}

// What a framework asks of the stage of its encoders.
bool has_first_layers(const Way& way) {
    const workloads::Model& model = way.setup->model;
    std::int64_t layers = 0;
    for (const LayerRange& part : way.partition.chains.front().stages.front().parts)
        if (part.module == model.backbone()) layers += part.count;
    return layers >= workloads::first_layers(model);
}

}  // namespace

bool launches(const Target& target, const Way& way) {
    const auto has = [](const std::vector<std::string>& all, const std::string& one) {
        return std::find(all.begin(), all.end(), one) != all.end();
    };
    const int zero = way.setup->recipe.zero;
    if (zero < target.launch.least_zero || zero > target.launch.most_zero) return false;
    if (!launches_in(target, way.setup->layout, way.setup->model)) return false;
    if (!way.has_pipeline) return true;
    if (!target.launch.spreads_encoders && !(has_whole_encoders(way) && has_first_layers(way))) return false;
    const bool cuts_so = !way.layers.empty() || has(target.launch.partitions, way.partition.name);
    return cuts_so && has(target.launch.policies, way.policy);
}

}  // namespace pipeweaver::planner
