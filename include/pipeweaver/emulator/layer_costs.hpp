// What passes through the layers of a model cost, asked again and again while partitions are compared.
#pragma once

#include "pipeweaver/base/ids.hpp"
#include "pipeweaver/emulator/layer_store.hpp"
#include "pipeweaver/emulator/pass_cost.hpp"
#include "pipeweaver/emulator/what_if.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace pipeweaver::emulator {

/// Consecutive layers of one module.
struct LayerRange {
    std::size_t module = 0;  ///< index into Model::modules
    std::int64_t first = 0;
    std::int64_t count = 0;
};

/// The layers of one stage, on one rank.
struct StageLayers {
    RankId rank{};
    std::vector<LayerRange> parts;
};

/// What of a stage's activations is not kept for the backward. In the order of what they keep, `offload` apart.
enum class Recompute : std::uint8_t {
    none,
    half,       ///< of half of the blocks only their input: they are computed again
    full,       ///< of all blocks
    selective,  ///< outputs of norms and activation functions, computed again (Megatron-LM's --recompute-modules
                ///< layernorm, moe_act, ...)
    offload     ///< all goes to the host's memory while the next block runs, and comes back a block ahead
};
/// "none", "half", "full", "selective" or "offload".
[[nodiscard]] std::string_view name_of(Recompute recompute);

/// Blocks of `count` that are recomputed, in part or whole.
[[nodiscard]] std::int64_t recomputed_layers(std::int64_t count, Recompute recompute);

struct AroundBlocks;

/// Lists of operators that a pass runs through, `times` times one after the other.
struct PassPiece {
    std::vector<PricedOperators> lists;
    std::size_t module = 0;  ///< whose layers they are
    std::int64_t layer = 0;  ///< the first of them
    std::int64_t times = 1;
    bool blocks = true;           ///< false: embedding, output head or projector
    std::int64_t parameters = 0;  ///< of one of them, on one GPU; those of experts left out
};

/// Remembers every answer. Equal blocks of a module under equal shapes are priced once, whatever layers, stages,
/// microbatches and passes ask for them.
/// Store        what others may have priced before; nothing: none.
/// Threads      one at a time.
class LayerCosts {
public:
    LayerCosts(const workloads::Model& model, const workloads::Cluster& cluster, const Layout& layout,
               const costdb::CostDatabase& costs, const Training& training = {}, const WhatIf* what_if = nullptr,
               std::int64_t replica = 0, LayerStore* store = nullptr);

    /// Repeated block `layer` of the module, on a rank of the replica; blocks of one kind are priced once.
    const PassCost& layer(std::size_t module, std::int64_t layer, const PassShape& shape, PassKind pass,
                          RankId rank = RankId{0});

    /// The blocks of a range.
    PassCost layers(const LayerRange& range, const PassShape& shape, PassKind pass, RankId rank = RankId{0});

    /// All of a stage: its blocks, and embedding, head and projectors where they are its own; with what is computed
    /// again, if it is a backward (or input gradient).
    PassCost stage(const StageLayers& stage, const std::vector<PassShape>& shapes, PassKind pass,
                   Recompute recompute = Recompute::none);

    /// The same as the operators themselves, in launch order. `beside_data`: slowed by traffic of replicas.
    std::vector<PassPiece> pieces(const StageLayers& stage, const std::vector<PassShape>& shapes, PassKind pass,
                                  Recompute recompute = Recompute::none, bool beside_data = false) const;

    /// The share of `stage` that recomputation runs again: its blocks' forward, or the memory-bound part of it.
    PassCost blocks_forward(const StageLayers& stage, const std::vector<PassShape>& shapes, Recompute recompute);

    const Training& training() const { return training_; }

private:
    // On which rank operators run, in what, and beside what.
    struct Place {
        std::size_t module = 0;
        RankId rank{};
        PassKind pass = PassKind::forward;
        bool beside_data = false;
    };
    PricedOperators priced(std::vector<Operator> operators, const Place& place) const;
    PricedOperators priced_layer(std::int64_t layer, const PassShape& shape, const Place& place) const;
    // What a block runs again in front of its backward.
    PricedOperators priced_again(std::int64_t layer, const PassShape& shape, Place place, Recompute recompute) const;
    PricedOperators with_copy(PricedOperators list, std::int64_t layer, const PassShape& shape,
                              const Place& place) const;
    PricedOperators priced_around(AroundBlocks around, RankId rank, bool beside_data = false) const;
    void add_blocks(const LayerRange& part, const PassShape& shape, const Place& place, Recompute recompute,
                    std::vector<PassPiece>& pieces) const;

    const workloads::Model& model_;
    const workloads::Cluster& cluster_;
    Layout layout_;
    const costdb::CostDatabase& costs_;
    InSituFactors factors_;
    Training training_;
    const WhatIf* what_if_;
    std::int64_t replica_;
    LayerStore* store_;
    std::map<LayerKey, PassCost> known_;
};

/// What the pieces of a pass cost together.
[[nodiscard]] PassCost cost_of(const std::vector<PassPiece>& pieces, const Training& training);

}  // namespace pipeweaver::emulator
