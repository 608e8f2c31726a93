// What all steps of a job share: the model on its machine, how it is trained, and what its operators cost.
//
// Ownership    Made once for a job and handed on by reference; it owns the costs of layers that any of its candidates,
//              replicas, targets and batches have asked for, so that each is priced once.
// Threads      any number may price steps of one Setup at once.
#pragma once

#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/layer_store.hpp"
#include "pipeweaver/emulator/layout.hpp"
#include "pipeweaver/emulator/memory.hpp"
#include "pipeweaver/emulator/module_layout.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/emulator/what_if.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <memory>

namespace pipeweaver::emulator {

struct Setup {
    workloads::Model model;
    workloads::Cluster cluster;
    Layout layout;
    std::shared_ptr<const costdb::CostDatabase> costs;  ///< shared: tables are large, and layouts to choose from many
    Recipe recipe{};
    WhatIf what_if{};
    Headroom headroom{};      ///< of every rank
    ModuleLayouts modules{};  ///< what partitions with a chain for each module are made for; none: as `layout` says.
                              ///< What a step is priced by is StepInput::layouts
    /// Holds costs of this setup's layers; null: everything is priced anew. Shared by setups whose layers cost the same
    /// (layouts that differ in pipeline ranks alone, or in replicas that meet in no layer), and by nobody else.
    std::shared_ptr<LayerStore> store = std::make_shared<LayerStore>();

    /// Whether it prices what partitions and shares of replicas are judged by.
    bool is_usual() const { return recipe == judging(recipe) && what_if.empty(); }
};

/// Where the layout's GPUs lie best on the cluster; not made where its network has no shape. By the bytes that a step
/// of 16 microbatches in each replica sends: between tensor and context parallel GPUs and those that share experts, of
/// the largest module's blocks; between pipeline ranks its width; between copies of trained weights their gradients and
/// weights, from ZeRO 2 on for each microbatch.
[[nodiscard]] Placement best_placement(const Setup& setup);

/// `setup` in another layout, with nothing priced yet and heads padded as the model's framework pads them there. Its
/// GPUs lie as the layout says, else in best_placement().
[[nodiscard]] Setup with_layout(const Setup& setup, const Layout& layout);

/// `setup` trained by another recipe, with nothing priced yet.
[[nodiscard]] inline Setup with_recipe(const Setup& setup, const Recipe& recipe, WhatIf what_if = {}) {
    return {setup.model, setup.cluster, setup.layout, setup.costs, recipe, std::move(what_if), setup.headroom};
}

/// What passes and all that a rank holds may take together: the usable part of its device, less the headroom. No other
/// function says so.
[[nodiscard]] Bytes capacity_of(const Setup& setup);

}  // namespace pipeweaver::emulator
