// Times of single kernels in nanoseconds, as the models of published steps add them up.
//
// The models weigh, scale and mix times, so they are doubles until the prediction is made.
#pragma once

#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/operators.hpp"

#include <cstdint>
#include <span>

namespace pipeweaver::validation {

/// Memory-bound work that reads and writes so many bytes.
[[nodiscard]] double traffic_ns(const costdb::CostDatabase& costs, double bytes);

/// One over `gpus` of a node; 0 for one GPU. All-reduces are asked for in fp32, for which the tables have a dense sweep
/// up to 1 GiB on A100: only the bytes matter. B200, whose cost tables hold none: size / bandwidth + steps
/// with the constants that SimuMax's system file gives for its NVLink (Apache-2.0).
[[nodiscard]] double collective_ns(const costdb::CostDatabase& costs, costdb::CollectiveKind kind, std::int64_t gpus,
                                   double bytes);

[[nodiscard]] double gemm_ns(const costdb::CostDatabase& costs, const costdb::Gemm& gemm);

/// The matrix products among the operators.
[[nodiscard]] double gemms_ns(const costdb::CostDatabase& costs, std::span<const emulator::Operator> operators);

/// The operators one after the other: compute and collectives times their factors.
[[nodiscard]] double operators_ns(const costdb::CostDatabase& costs, std::span<const emulator::Operator> operators,
                                  double compute, double collectives);

}  // namespace pipeweaver::validation
