#include "emulator/stage_memory.hpp"

#include "emulator/module_roles.hpp"
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/counts.hpp"

#include <algorithm>
#include <set>

namespace pipeweaver::emulator {

using namespace workloads;

PassMemory pass_memory(const StepInput& input, const StageLayers& stage, const std::vector<PassShape>& shapes,
                       Recompute recompute, bool gradient, bool split_backward) {
    PassMemory memory;
    Bytes largest_block, recomputed, workspace;
    for (const LayerRange& part : stage.parts) {
        const Architecture& network = input.model->modules[part.module].architecture;
        const std::int64_t m = block_positions(network, shapes[part.module]);
        const std::int64_t context = shapes[part.module].context_positions();
        const std::int64_t tp = input.layout.tp;
        if (m == 0) continue;
        const Bytes input_bytes = layer_input(network, m, tp);
        const std::int64_t again = recomputed_layers(part.count, recompute);
        memory.held += input_bytes + context_input(network, context, tp);
        for (std::int64_t i = 0; i < part.count; ++i) {
            const Bytes block = layer_activations(network, part.first + i, m, context, tp);
            memory.held += i < again ? input_bytes : block;
            if (i < again) recomputed += block - input_bytes;
            largest_block = std::max(largest_block, block);
        }
        workspace = std::max(workspace, layer_backward_workspace(network, m, tp));
        const bool last = part.first + part.count == network.layers;
        if (!last || !has_head(*input.model, part.module)) continue;
        memory.held += head_activations(network, m, tp);
        workspace = std::max(workspace, head_backward_workspace(network, m));
    }
    if (!gradient) {
        // One block after the other: only the one at work holds anything.
        memory = {Bytes{}, largest_block, Bytes{}};
        return memory;
    }
    if (recomputed.count > 0) memory.forward_transient = largest_block;
    // A block is computed again just before its own backward; with a split backward all must wait for their W.
    memory.transient = workspace + (recomputed.count == 0 ? Bytes{} : split_backward ? recomputed : largest_block);
    return memory;
}

namespace {

void add_part(const StepInput& input, const LayerRange& part, RankParameters& rank, std::set<std::size_t>& seen) {
    const Module& module = input.model->modules[part.module];
    const Architecture& network = module.architecture;
    const std::int64_t tp = input.layout.tp;
    std::int64_t own = 0, largest = 0;
    for (std::int64_t i = part.first; i < part.first + part.count; ++i) {
        own += layer_parameters(network, i) / tp;
        largest = std::max(largest, layer_parameters(network, i) / tp);
    }
    const bool first = part.first == 0, last = part.first + part.count == network.layers;
    const bool tied = network.tied_embeddings && has_head(*input.model, part.module);
    if (first) own += embedding_parameters(network) / tp;
    if (last && has_head(*input.model, part.module))
        own += tied && !first ? embedding_parameters(network) / tp : head_parameters(network) / tp;
    if (tied && first != last) {
        rank.shares_embedding = true;
        rank.tied = embedding_parameters(network) / tp;
    }
    if (last)
        for (const auto& edge : input.model->edges)
            if (edge.from == part.module) own += projector_parameters(edge) / tp;
    (module.trainable ? rank.trained : rank.frozen) += own;
    if (module.trainable && seen.insert(part.module).second) rank.largest_layers += largest;
    if (module.trainable && last && has_head(*input.model, part.module))
        rank.largest_layers += head_parameters(network) / tp;
}

}  // namespace

std::vector<RankParameters> rank_parameters(const StepInput& input) {
    std::vector<RankParameters> ranks(static_cast<std::size_t>(input.layout.pp));
    std::vector<std::set<std::size_t>> seen(ranks.size());
    for (const Chain& chain : input.chains)
        for (const StageLayers& stage : chain.stages)
            for (const LayerRange& part : stage.parts)
                add_part(input, part, ranks[index(stage.rank)], seen[index(stage.rank)]);
    return ranks;
}

std::vector<StaticMemory> static_memory(const StepInput& input) {
    std::vector<StaticMemory> all;
    for (const RankParameters& rank : rank_parameters(input)) {
        StaticMemory memory;
        memory.weights = Bytes{2 * (rank.trained + rank.frozen)};
        memory.gradients = Bytes{4 * rank.trained};
        memory.optimizer = Bytes{(12 * rank.trained + input.layout.dp - 1) / input.layout.dp};
        memory.workspace = Bytes{2 * rank.largest_layers};
        all.push_back(memory);
    }
    return all;
}

}  // namespace pipeweaver::emulator
