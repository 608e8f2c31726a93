// How a model is spread over GPUs.
#pragma once

#include "pipeweaver/emulator/placement.hpp"
#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace pipeweaver::emulator {

/// How the GPUs of a context parallel group attend to whole sequences, of which each keeps a part.
enum class ContextParallel : std::uint8_t {
    all_to_all,  ///< parts of the sequence become parts of the heads and back (DeepSpeed-Ulysses, arXiv 2309.14509)
    ring         ///< keys and values go round while each part attends to those at hand (arXiv 2310.01889)
};

/// Degrees of parallelism. Tensor parallelism includes sequence parallelism: what is not split by heads or columns is
/// split by tokens, as in Megatron-LM with `--sequence-parallel`. GPUs are numbered tensor parallel first, then context
/// parallel ones, replicas, pipeline ranks (Megatron-LM's order).
struct Layout {
    std::int64_t tp = 1;  ///< tensor parallel GPUs of one pipeline rank
    std::int64_t pp = 1;  ///< pipeline ranks
    std::int64_t dp = 1;  ///< replicas
    std::int64_t cp = 1;  ///< context parallel groups of tp GPUs of one pipeline rank, each with a part of every
                          ///< sequence
    std::int64_t ep = 1;  ///< GPUs that share out the experts of a layer, whole ones each, or groups of as many GPUs
                          ///< as the recipe splits an expert over; with those it divides tp * cp * dp. Where both
                          ///< together are more than tp * cp, replicas meet in every layer with experts
    ContextParallel context = ContextParallel::all_to_all;
    std::int64_t ulysses = 0;  ///< of a module that says so, GPUs of a context parallel group that exchange heads,
                               ///< side by side; keys go round among such groups (USP, arXiv 2405.07719). It
                               ///< divides cp. 0: as `context` says
    std::int64_t gpus_per_node = 8;  ///< of the cluster: what groups of GPUs send inside a node
    Bandwidth network{};             ///< of a node, beyond it; 0: of the machine whose collectives were measured
    Bandwidth node_link{};           ///< of a GPU, inside it; 0: as `network`

    // Of a module that lies so (Module::lies), beside the degrees that divide it: GPUs that do the same on the same
    // weights, those of tensor parallelism and groups of context parallelism.
    std::int64_t alike_tensor = 1;
    std::int64_t alike_context = 1;
    bool all_positions = false;  ///< its tensor parallel GPUs hold them, with sequence parallelism, too

    Placement placement{};  ///< of the job's degrees, where the network has a shape; not made: by its numbers

    /// GPUs of a context parallel group that exchange heads: 1 in a ring.
    std::int64_t exchanging() const {
        if (ulysses > 0) return ulysses;
        return context == ContextParallel::ring ? 1 : cp;
    }

    std::int64_t gpus() const { return tp * cp * pp * dp; }
    std::int64_t gpus_of_rank() const { return tp * cp; }  ///< in one replica
    /// Of weights outside experts, which share out states and gradients: none of those that are alike in tensor
    /// parallelism.
    std::int64_t weight_copies() const { return cp * alike_context * dp; }
    /// From one of them to the next, in GPUs.
    std::int64_t stride() const { return tp * alike_tensor; }
    /// Of each expert, which is split over so many GPUs (ExpertParallel::tensor_parallel).
    std::int64_t expert_copies(std::int64_t gpus_of_expert) const { return tp * cp * dp / (ep * gpus_of_expert); }

    /// This layout on the nodes of a cluster.
    Layout on(const workloads::Cluster& cluster) const {
        Layout placed = *this;
        placed.gpus_per_node = cluster.gpus_per_node;
        placed.network = cluster.network;
        placed.node_link = cluster.node_link;
        if (!placement.places(*this)) placed.placement = as_numbered(*this, fabric_of(cluster));
        return placed;
    }

    /// A GPU's part of its node's network if all GPUs of the node send.
    Bandwidth network_of_gpu() const { return {network.bytes_per_second / gpus_per_node}; }

    /// How many of `positions` a context parallel GPU has, rounded up.
    std::int64_t part(std::int64_t positions) const { return (positions + cp - 1) / cp; }
};

/// The part of a model that a layout does not divide.
enum class Indivisible {
    heads,
    columns,
    layers,
    context,
    experts,
    sequences  ///< that the framework does not part (Built::most_cp)
};

struct LayoutConflict {
    Indivisible what = Indivisible::heads;
    std::string message;  ///< naming the option, the module and what would fit
};

/// What --ep is where it is not given: the largest number of GPUs of a rank (tp * cp) that can share out the experts of
/// every module, which divides both; 1 without experts. Where an expert is split, so many groups of GPUs.
[[nodiscard]] std::int64_t default_ep(const Layout& layout, const workloads::Model& model,
                                      std::int64_t gpus_of_expert = 1);

/// "tp 8 x pp 4 x dp 1"; with "x cp 2" after tp, and ", ep 8" at the end, where they are above 1.
[[nodiscard]] std::string name_of(const Layout& layout);

/// A layout as options and their product: "--tp 8 * --pp 4 * --dp 1 = 32".
[[nodiscard]] std::string product_of(const Layout& layout);

/// Why the model cannot be spread so: heads and feed-forward widths must be divisible by tp, key heads of linear
/// attention too, heads by tp * cp where context parallelism exchanges them (value heads of linear attention always),
/// experts by ep, tp * cp * dp by ep times the GPUs of an expert, which divide its columns, and every module needs a
/// layer for each pipeline rank. Of a module that lies whole, or takes whole sequences, nothing is divided by that
/// degree; and `Model::built` may have no such cp. None: it can.
[[nodiscard]] std::optional<LayoutConflict> conflict(const Layout& layout, const workloads::Model& model,
                                                     std::int64_t gpus_of_expert = 1);

/// Why the layout does not use exactly the cluster's GPUs or does not divide the model, see `conflict`: the module and
/// what would fit. None: it does.
[[nodiscard]] std::optional<std::string> why_not(const Layout& layout, const workloads::Cluster& cluster,
                                                 const workloads::Model& model, std::int64_t gpus_of_expert = 1);

/// Throws Error{input} with that.
void check(const Layout& layout, const workloads::Cluster& cluster, const workloads::Model& model,
           std::int64_t gpus_of_expert = 1);

}  // namespace pipeweaver::emulator
