// What passes through the layers of a model cost, asked again and again while partitions are compared.
#pragma once

#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/emulator/pass_cost.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/emulator/what_if.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace pipeweaver::emulator {

struct AroundBlocks;

/// Remembers every answer. Equal blocks of a module under equal shapes are priced once, whatever layers, stages,
/// microbatches and passes ask for them.
/// Threads      one at a time.
class LayerCosts {
public:
    /// Where answers are kept: in the setup's store, or in these costs alone.
    enum class Store { shared, own };

    /// Costs of layers trained as the setup says, on one of its replicas, modules in its layout. Pre: `setup` outlives
    /// them.
    explicit LayerCosts(const Setup& setup, std::int64_t replica = 0, Store store = Store::shared)
        : LayerCosts(setup, {}, replica, store) {}

    /// The same with layouts of modules that a partition has.
    LayerCosts(const Setup& setup, const ModuleLayouts& modules, std::int64_t replica, Store store = Store::shared);

    /// Costs of layers trained the usual way, whatever the setup says: partitions and shares of replicas are judged by
    /// them.
    [[nodiscard]] static LayerCosts usual(const Setup& setup) { return usual(setup, {}); }
    [[nodiscard]] static LayerCosts usual(const Setup& setup, const ModuleLayouts& modules);

    ~LayerCosts();
    LayerCosts(const LayerCosts&) = delete;
    LayerCosts& operator=(const LayerCosts&) = delete;

    /// The cost of repeated block `layer` of the module for a unit of that shape, on a rank of the replica: of the
    /// fullest of the module's copies. Blocks of one kind are priced once.
    const PassCost& layer(std::size_t module, std::int64_t layer, const PassShape& shape, PassKind pass,
                          RankId rank = RankId{0});

    /// The cost of all blocks of a range; a forward has those of the model beside it, too.
    PassCost layers(const LayerRange& range, const PassShape& shape, PassKind pass, RankId rank = RankId{0});

    /// The cost of a pass through a whole stage: its blocks, and embedding, head and projectors where it has them; a
    /// backward or input gradient includes what is computed again.
    PassCost stage(const StageLayers& stage, const std::vector<PassShape>& shapes, PassKind pass,
                   Recompute recompute = Recompute::none);

    /// The operators whose costs stage() adds up, in launch order. `beside_data`: slowed by traffic of replicas.
    std::vector<PassPiece> pieces(const StageLayers& stage, const std::vector<PassShape>& shapes, PassKind pass,
                                  Recompute recompute = Recompute::none, bool beside_data = false) const;

    /// The cost of what a task of the schedule runs: the host's own work for it (Recipe::action), then the pass of its
    /// stage.
    PassCost task(const StageLayers& stage, const std::vector<PassShape>& shapes, PassKind pass,
                  Recompute recompute = Recompute::none);
    std::vector<PassPiece> task_pieces(const StageLayers& stage, const std::vector<PassShape>& shapes, PassKind pass,
                                       Recompute recompute = Recompute::none, bool beside_data = false) const;

    /// The share of `stage` that recomputation runs again: its blocks' forward, or the memory-bound part of it.
    PassCost blocks_forward(const StageLayers& stage, const std::vector<PassShape>& shapes, Recompute recompute);

    const Recipe& recipe() const { return recipe_; }

private:
    // On which rank operators run, in what, and beside what.
    struct Place {
        std::size_t module = 0;
        RankId rank{};
        PassKind pass = PassKind::forward;
        bool beside_data = false;
        std::int64_t layer = -1;  // that they are of; -1: around the blocks
    };
    // What a layer has besides its operators.
    struct HostWork {
        double passes = 0;      // launches, as so many forwards of a layer have
        double routing_us = 0;  // of experts on this device, forward and backward
        Duration waits{};       // of the host and the GPU for each other (Recipe::expert_layer), forward and backward
    };
    PricedOperators priced(std::vector<Operator> operators, const Place& place) const;
    double factor_of_pass(const Place& place) const;
    PricedOperators priced_layer(std::int64_t layer, const PassShape& shape, Place place) const;
    double passes_of_host(const workloads::Architecture& network, const PassShape& shape, const Place& place) const;
    PricedOperators with_host(PricedOperators list, const HostWork& host, const Place& place) const;
    // What a block runs again in front of its backward.
    PricedOperators priced_again(std::int64_t layer, const PassShape& shape, Place place, Recompute recompute) const;
    PricedOperators with_copy(PricedOperators list, std::int64_t layer, const PassShape& shape,
                              const Place& place) const;
    PassPiece action_of(const StageLayers& stage) const;
    PricedOperators priced_around(const AroundBlocks& around, std::vector<Operator> operators, RankId rank,
                                  bool beside_data = false) const;
    void add_blocks(const LayerRange& part, const PassShape& shape, const Place& place, Recompute recompute,
                    std::vector<PassPiece>& pieces) const;

    LayerCosts(const Setup& setup, const ModuleLayouts& modules, const Recipe& recipe, const WhatIf* what_if,
               std::int64_t replica, LayerStore* store);
    const Layout& layout_of(std::size_t module) const { return modules_[module].layout; }
    bool reach_into_each_other(Recompute recompute) const;

    const workloads::Model& model_;
    const workloads::Cluster& cluster_;
    std::vector<PlacedModule> modules_;
    const costdb::CostDatabase& costs_;
    std::array<InSituFactors, 2> factors_;         // by Precision
    std::vector<std::array<double, 2>> measured_;  // per module, forward and backward: in runs, over the costs
    std::vector<bool> gradient_;                   // per module: gradients reach it
    Recipe recipe_;
    const WhatIf* what_if_;
    std::int64_t replica_;
    LayerStore* store_;

    // What is known under one shape; sequences in another order are the same one.
    struct OfShape {
        struct Asked {
            std::size_t module = 0, what = 0;  // a kind of block, or what stands around the blocks
            PassKind pass{};
            double device = 1;
            double sparsity = 0;  // of the block's attention

            friend bool operator==(const Asked&, const Asked&) = default;
        };
        std::deque<std::pair<Asked, PassCost>> costs;  // of few passes: looked through from the front

        // The place of what was asked, and whether it is new.
        std::pair<PassCost*, bool> find(const Asked& asked);
    };
    OfShape& of(const PassShape& shape);
    const PassCost& layer_on_copy(std::size_t module, std::int64_t layer, const PassShape& shape, PassKind pass,
                                  RankId rank);
    PassCost layers_on_copy(const LayerRange& range, const PassShape& shape, PassKind pass, RankId rank);
    double device(RankId rank) const;

    struct Beside;
    std::unique_ptr<Beside> beside_;  // a reference's copy, or a teacher; null: there is none

    std::map<Sequences, OfShape> known_;
    std::map<Sequences, OfShape>::value_type* last_ = nullptr;  // that was asked for, under `last_shape_`
    PassShape last_shape_;
};

/// What the pieces of a pass cost together.
[[nodiscard]] PassCost cost_of(const std::vector<PassPiece>& pieces, const Recipe& recipe);

}  // namespace pipeweaver::emulator
