// The best split of a job's GPUs to groups of its modules, and the same job with all modules on the same GPUs.
//
// Layouts      tp inside a node; pp that divides the backbone's layers, or those of a group without it, there at most
//              `most_stages_beside`; what is asked for need not divide them. dp of the backbone's
//              group divides the microbatches of a step, and is a multiple or a divisor of the others'. Where a group
//              has more replicas, items of a microbatch are dealt to them, whole ones.
// Costs        of passes, memory, gradients and transfers are the emulator's, of the group's layers in its layout.
//              1F1B on both sides, with one chunk a rank; of `none`, `selective` and `full` recomputation the one that
//              is best for the group.
// Rounds       Microbatches are sorted by their items, so that those of a round are alike; rounds rise, or light
//              and heavy ones take turns, whichever is faster, and the slowest replica decides.
//              Of many different ones `most_priced` are priced, and stand for their neighbours.
// Bridge       A round's activations go through the links of the GPUs of either group, whichever takes longer: inside a
//              node where the cluster is one node, else over the network, which the GPUs of a node share.
// Determinism  A function of the arguments.
#pragma once

#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/groups/placing.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::groups {

inline constexpr std::int64_t most_stages_beside = 4;
inline constexpr std::size_t most_priced = 64;

/// A group as it is asked for.
struct Asked {
    std::string name;
    std::vector<std::size_t> modules;          ///< indices into the model's
    std::optional<std::int64_t> gpus, tp, pp;  ///< none: to be chosen
};

/// "auto": each module is a group; or "vit=16,llm=112": modules, joined by + where they share a group, and GPUs; behind
/// them may stand degrees: "llm=112:tp8:pp2". Throws Error{input} for other texts, for modules that the model has not,
/// and unless each is named once.
[[nodiscard]] std::vector<Asked> asked_groups(const std::string& text, const workloads::Model& model);

struct Request {
    const emulator::Setup* setup = nullptr;  ///< its layout does not count
    std::vector<workloads::Microbatch> microbatches;
    std::vector<Asked> groups;
    std::optional<std::int64_t> tp, pp;  ///< of the layout with all modules on the same GPUs; none: to be chosen
    /// There the backbone's layers are cut evenly, whatever lies beside them; else by time.
    bool even = false;
};

/// All modules in groups of their own; none: nothing fits. Throws Error{input} where replicas share states from ZeRO 2
/// on, where a group has no work, fewer layers than stages, or needs what another makes of its own, and what the
/// cost database throws. Pre: microbatches.
[[nodiscard]] std::optional<Placing> on_own_gpus(const Request& request);

/// All modules in one chain, encoders whole on its first stage or all layers cut by time, in the best layout on as many
/// GPUs at most. Throws as on_own_gpus().
[[nodiscard]] std::optional<Placing> on_shared_gpus(const Request& request);

}  // namespace pipeweaver::groups
