#include "pipeweaver/partition/partition.hpp"

#include <algorithm>

namespace pipeweaver::partition {

using namespace emulator;

std::int64_t most_stages_of_a_rank(const Partition& partition) {
    std::vector<std::int64_t> stages;
    for (const Chain& chain : partition.chains)
        for (const StageLayers& stage : chain.stages) {
            stages.resize(std::max(stages.size(), index(stage.rank) + 1));
            ++stages[index(stage.rank)];
        }
    return *std::max_element(stages.begin(), stages.end());
}

bool shares_ranks(const Partition& partition) {
    return std::any_of(partition.layouts.begin(), partition.layouts.end(),
                       [](const ModuleLayout& one) { return one.copies > 1 && !one.in_phases; });
}

Partition in_one_chain(const Partition& partition, const workloads::Model& model) {
    Partition one{partition.name, 0, {Chain{}}, {0}, partition.notes, {}};
    Chain& row = one.chains.front();
    for (const Chain& chain : partition.chains) {
        row.name += (row.name.empty() ? "" : "+") + chain.name;
        row.stages.insert(row.stages.end(), chain.stages.begin(), chain.stages.end());
    }
    // Modules in phases lie whole on the first stage.
    std::vector<LayerRange> front;
    for (const std::size_t m : phase_modules(partition)) front.push_back({m, 0, model.modules[m].architecture.layers});
    auto& first = row.stages.front().parts;
    first.insert(first.begin(), front.begin(), front.end());
    one.chunks_per_rank = most_stages_of_a_rank(one);
    return one;
}

Partition like_a_v(Partition partition, std::int64_t ranks) {
    if (partition.chains.size() != 1) return partition;
    auto& stages = partition.chains.front().stages;
    const auto row = static_cast<std::size_t>(ranks);
    if (stages.size() != 2 * row) return partition;
    for (std::size_t k = row; k < 2 * row; ++k) stages[k].rank = RankId{static_cast<std::uint32_t>(2 * row - 1 - k)};
    return partition;
}

}  // namespace pipeweaver::partition
