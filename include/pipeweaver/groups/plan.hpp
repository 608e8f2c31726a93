// The best split of a job's GPUs to groups of its modules, and the same job with all modules on the same GPUs.
//
// Layouts      tp inside a node; pp that divides the backbone's layers, or those of a group without it, there at most
//              `most_stages_beside`; what is asked for need not divide them. dp of the backbone's
//              group divides the microbatches of a step, and is a multiple or a divisor of the others'. Where a group
//              has more replicas, items of a microbatch are dealt to them, whole ones; where it has fewer, a replica
//              passes the items of its microbatches together, as Megatron MIMO's encoders do. The recipe's ZeRO stage,
//              and 1 where 0 does not fit; cp of the backbone's group, inside a node, where nothing fits without.
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
    std::vector<std::size_t> modules;  ///< indices into the model's
    // None: to be chosen.
    std::optional<std::int64_t> gpus{}, tp{}, cp{}, pp{}, dp{};
    std::optional<std::int64_t> zero{};              ///< 0 or 1
    std::optional<emulator::Recompute> recompute{};  ///< none, selective or full
    /// Of each stage; none: to be chosen. Pre: there are as many as `pp`, and they are all of the group's.
    std::vector<std::int64_t> layers{};
};

/// "auto": each module is a group; or "vit=16,llm=112": modules, joined by + where they share a group, and GPUs; behind
/// them may stand degrees: "llm=112:tp8:cp1:pp2:dp7:zero1"; or a file of pipeweaver-split/1, or its JSON. Throws
/// Error{input} for other texts, for modules that the model has not, and unless each is named once; Error{io}.
[[nodiscard]] std::vector<Asked> asked_groups(const std::string& text, const workloads::Model& model);

/// A group that is placed as that text asks for it: "llm=112:tp8:cp1:pp2:dp7:zero1".
[[nodiscard]] std::string text_of(const Placed& placed);

/// All of its groups, as --groups takes them.
[[nodiscard]] std::string text_of(const Placing& placing);

/// Asks for the group's GPUs and layout as it was placed.
void take_layout(const Placed& placed, Asked& asked);

/// Each module that has work in the microbatches has a group of its own; others share that of the backbone.
[[nodiscard]] std::vector<Asked> groups_with_work(const workloads::Model& model,
                                                  const std::vector<workloads::Microbatch>& microbatches);

struct Request {
    const emulator::Setup* setup = nullptr;  ///< its layout does not count
    std::vector<workloads::Microbatch> microbatches;
    std::vector<Asked> groups;
    std::optional<std::int64_t> tp{}, pp{};  ///< of the layout with all modules on the same GPUs; none: to be chosen
    /// There the backbone's layers are cut evenly, whatever lies beside them; else by time.
    bool even = false;
    /// A group may have more replicas than the backbone's, each with some items of a microbatch.
    bool parts_items = true;
    bool as_far = false;               ///< as Split::as_far: launchers run 1F1B, whatever memory there is
    std::size_t priced = most_priced;  ///< microbatches, at least 2: few are quick, and coarse
    std::optional<Bytes> capacity{};   ///< usable bytes of a GPU, in place of the device's
};

/// Why these groups cannot be: replicas share states from ZeRO 2 on, they need more GPUs than there are, a group has no
/// work, fewer layers than stages, other GPUs than its degrees, or needs what another makes of its own. None: they can.
[[nodiscard]] std::optional<std::string> why_not(const Request& request);

/// All modules in groups of their own; none: nothing fits. Throws Error{input} with why_not(), and what the cost
/// database throws. Pre: microbatches.
[[nodiscard]] std::optional<Placing> on_own_gpus(const Request& request);

/// The same, sooner: the split is sought with few microbatches priced, then it alone is priced with as many as are
/// asked for. Its step is that of on_own_gpus() where its groups are asked for (take_layout).
[[nodiscard]] std::optional<Placing> on_own_gpus_soon(const Request& request);

/// All modules in one chain, encoders whole on its first stage or all layers cut by time, in the best layout on as many
/// GPUs at most. Throws as on_own_gpus().
[[nodiscard]] std::optional<Placing> on_shared_gpus(const Request& request);

}  // namespace pipeweaver::groups
