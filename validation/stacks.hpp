// Which recipe a published run is of: a table from what its source is called to what that stack does, and what the
// row's note says besides.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/emulator/recompute.hpp"
#include "pipeweaver/partition/partitioner_names.hpp"
#include "pipeweaver/validation/published_run.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::validation {

/// The first whose words the row has.
struct Stack {
    std::string_view source;       ///< part of the row's source, in lower case
    std::string_view also = {};    ///< part of its model or note, in lower case; empty: anything
    std::string_view recipe = {};  ///< a shipped one; empty: that of the device (default_recipe)
    bool known_kinds = false;      ///< what the recipe was fitted on is all that it is asked for; else every kind
    std::int64_t micro_batch = 0;  ///< of rows that do not say; 0: refused
    std::string_view partition = partition::uniform_partition;  ///< how it cuts layers into stages
    std::optional<emulator::StateBytes> state{};                ///< nothing: the recipe's
    std::optional<emulator::UpdateTraffic> update{};            ///< the same
    std::optional<int> zero{};  ///< ZeRO's stage where notes name none; nothing: the recipe's
    emulator::MemoryKind memory = emulator::MemoryKind::allocated;  ///< what it prints as a GPU's peak
    std::optional<emulator::Recompute> recompute{};                 ///< of rows that do not say; nothing: none
    bool offloads_inputs = false;  ///< its "offload" recomputes layers whole, whose inputs are on the host
};
[[nodiscard]] const Stack& stack_of(const PublishedRun& row);

/// The number behind the words, 0 without.
[[nodiscard]] std::int64_t number_after(std::string_view text, std::string_view words);

/// Of rows whose source no entry names.
[[nodiscard]] std::string_view default_recipe(std::string_view device);

/// How a run was trained.
struct RunRecipe {
    emulator::Recipe recipe;
    std::string partition = partition::uniform_partition;
    bool ring = true;                ///< context parallelism by a ring, else by all-to-all
    Bandwidth network{};             ///< of a node; 0: the device's cluster's
    Bandwidth node_link{};           ///< of a GPU; 0: the device's cluster's
    std::int64_t gpus_per_node = 0;  ///< 0: the device's cluster's
    bool shares_in_nodes = false;    ///< weights are shared out in each node: no memory of that is counted
    std::vector<std::string> assumed{};
};

/// The stack's recipe with what the note says of the run: ZeRO's stage, overlap, CUDA graphs, the fabric. `own` are
/// taken in place of shipped ones of their names.
[[nodiscard]] RunRecipe recipe_of(const PublishedRun& row, std::string_view device,
                                  std::span<const emulator::Recipe> own);

}  // namespace pipeweaver::validation
