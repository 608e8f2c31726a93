// How a model is spread over GPUs.
#pragma once

#include "pipeweaver/workloads/cluster.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace pipeweaver::emulator {

/// Degrees of parallelism. Tensor parallelism includes sequence parallelism: what is not split by heads or columns is
/// split by tokens, as in Megatron-LM with `--sequence-parallel`.
struct Layout {
    std::int64_t tp = 1;  ///< tensor parallel GPUs behind one pipeline rank
    std::int64_t pp = 1;  ///< pipeline ranks
    std::int64_t dp = 1;  ///< replicas

    std::int64_t gpus() const { return tp * pp * dp; }
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
