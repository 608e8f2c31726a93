#include "emit/plan/asked_json.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::emit {

using namespace emulator;
using Writer = nlohmann::ordered_json;

Writer costs_json(const std::optional<planner::CostFile>& costs) {
    if (!costs) return nullptr;
    return {{"file", costs->path}, {"sha256", costs->sha256}};
}

Writer partition_json(const partition::Partition& partition, const workloads::Model& model) {
    Writer chains = Writer::array();
    std::int64_t number = 0;
    for (std::size_t c = 0; c < partition.chains.size(); ++c) {
        Writer stages = Writer::array();
        for (const StageLayers& stage : partition.chains[c].stages) {
            Writer parts = Writer::array();
            for (const LayerRange& part : stage.parts)
                parts.push_back(
                    {{"module", model.modules[part.module].name}, {"first_layer", part.first}, {"layers", part.count}});
            stages.push_back({{"stage", number++}, {"rank", index(stage.rank)}, {"parts", std::move(parts)}});
        }
        chains.push_back({{"name", partition.chains[c].name},
                          {"unit_items", partition.unit_items[c]},
                          {"stages", std::move(stages)}});
    }
    return {{"name", partition.name},
            {"chunks_per_rank", partition.chunks_per_rank},
            {"notes", partition.notes},
            {"chains", std::move(chains)}};
}

}  // namespace pipeweaver::emit
