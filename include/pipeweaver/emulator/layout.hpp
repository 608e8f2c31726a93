// How a model is spread over GPUs.
#pragma once

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
    std::int64_t tp = 1;  ///< tensor parallel GPUs behind one pipeline rank
    std::int64_t pp = 1;  ///< pipeline ranks
    std::int64_t dp = 1;  ///< replicas
    std::int64_t cp = 1;  ///< context parallel groups of tp GPUs behind one pipeline rank, each with a part of every
                          ///< sequence
    std::int64_t ep = 1;  ///< GPUs that share out the experts of a layer, whole ones each; divides tp * cp * dp. Where
                          ///< it is more than tp * cp, replicas meet in every layer with experts
    ContextParallel context = ContextParallel::all_to_all;

    std::int64_t gpus() const { return tp * cp * pp * dp; }
    std::int64_t gpus_of_rank() const { return tp * cp; }             ///< in one replica
    std::int64_t weight_copies() const { return cp * dp; }            ///< of weights outside experts
    std::int64_t expert_copies() const { return tp * cp * dp / ep; }  ///< of each expert
};

/// What of a model a layout does not divide.
enum class Indivisible { heads, columns, layers };

struct LayoutConflict {
    Indivisible what = Indivisible::heads;
    std::string message;  ///< naming the option, the module and what would fit
};

/// Why the model cannot be spread so: heads and feed-forward widths must be divisible by tp, and every module needs a
/// layer for each pipeline rank. Nothing: it can.
[[nodiscard]] std::optional<LayoutConflict> conflict(const Layout& layout, const workloads::Model& model);

/// Requires that the layout uses exactly the cluster's GPUs and that it divides the model: heads and feed-forward
/// widths by tp, layers at least one for each rank. Throws Error{input} naming the module and what would fit.
void check(const Layout& layout, const workloads::Cluster& cluster, const workloads::Model& model);

}  // namespace pipeweaver::emulator
