#include "pipeweaver/partition/partition.hpp"

#include <algorithm>

namespace pipeweaver::partition {

using namespace emulator;

Partition in_one_chain(const Partition& partition) {
    Partition one{partition.name, 0, {Chain{}}, {0}, partition.notes, {}};
    Chain& row = one.chains.front();
    for (const Chain& chain : partition.chains) {
        row.name += (row.name.empty() ? "" : "+") + chain.name;
        row.stages.insert(row.stages.end(), chain.stages.begin(), chain.stages.end());
    }
    // Dealt modules lie whole on the first stage.
    std::vector<LayerRange> front;
    for (const DealtModule& dealt : partition.dealt) front.push_back({dealt.module, 0, dealt.layers});
    auto& first = row.stages.front().parts;
    first.insert(first.begin(), front.begin(), front.end());
    std::vector<std::int64_t> chunks;
    for (const StageLayers& stage : row.stages) {
        chunks.resize(std::max(chunks.size(), index(stage.rank) + 1));
        one.chunks_per_rank = std::max(one.chunks_per_rank, ++chunks[index(stage.rank)]);
    }
    return one;
}

}  // namespace pipeweaver::partition
