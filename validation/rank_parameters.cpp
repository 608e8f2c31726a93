#include "validation/rank_parameters.hpp"

#include "pipeweaver/workloads/counts.hpp"

namespace pipeweaver::validation {

using namespace emulator;

std::vector<RankLayers> rank_layers(const TrainingRun& run) {
    const auto& network = run.network;
    const std::int64_t tp = run.layout.tp, table = network.vocab * network.hidden / tp;
    std::vector<RankLayers> ranks;
    std::int64_t first = 0;
    for (const std::int64_t count : run.layers_of_ranks()) {
        RankLayers rank{
            .first = first, .count = count, .embedding = first == 0, .head = first + count == network.layers};
        for (std::int64_t i = first; i < first + count; ++i) {
            const auto layer = workloads::layer_parameter_parts(network, i);
            const std::int64_t norms =
                2 * network.hidden + network.attention.q_lora_rank.value_or(0) + network.attention.kv_lora_rank;
            rank.common += layer.common(tp) + norms;
            rank.experts += layer.experts / run.ep;
        }
        if (rank.embedding) rank.common += table;
        if (rank.head) rank.common += table + network.hidden;
        ranks.push_back(rank);
        first += count;
    }
    return ranks;
}

}  // namespace pipeweaver::validation
