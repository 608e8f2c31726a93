// The optimizer's update, and what gradients and weights go through around it.
#pragma once

#include "pipeweaver/costdb/database.hpp"

#include <cstdint>

namespace pipeweaver::validation {

/// Adam in mixed precision reads and writes 32 bytes a parameter (fp32 gradient, weight and two moments, 16-bit
/// weight): every GPU all of its own.
[[nodiscard]] double optimizer_ns(const costdb::CostDatabase& costs, double parameters);

/// Distributed optimizer (ZeRO-1): 34 bytes of the parameters that this one of `shards` GPUs updates, and 8 of all it
/// holds: gradients cleared and their norm taken.
[[nodiscard]] double distributed_optimizer_ns(const costdb::CostDatabase& costs, double parameters,
                                              std::int64_t shards);

/// All-reduce of fp32 gradients over `replicas` of `tensor_parallel` GPUs each that follows the backwards and overlaps
/// nothing: inside a node as the tables say, or the rings of nodes at `network_bytes_per_ns` a node, which its GPUs
/// share; the slower of the two. `parameters` are a GPU's.
[[nodiscard]] double gradient_all_reduce_ns(const costdb::CostDatabase& costs, double parameters, std::int64_t replicas,
                                            std::int64_t tensor_parallel, double network_bytes_per_ns);

}  // namespace pipeweaver::validation
