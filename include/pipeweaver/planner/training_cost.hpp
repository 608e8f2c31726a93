// What a whole training run takes at the pace of one step.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace pipeweaver::planner {

struct TrainingCost {
    std::int64_t tokens = 0;  ///< of the model's backbone, in all steps
    std::int64_t steps = 0;
    double days = 0, gpu_hours = 0;
    std::optional<double> usd;  ///< none: the cluster has no price
    std::optional<double> kwh;  ///< of the GPUs at their data sheet's power; none: it is not known
};

/// `tokens` in steps of `tokens_of_step`, the last one begun counted whole, on all GPUs of the cluster. Pre: step and
/// tokens_of_step are above 0.
[[nodiscard]] TrainingCost training_cost(std::int64_t tokens, Duration step, std::int64_t tokens_of_step,
                                         const workloads::Cluster& cluster);

/// "300B", "1.5T", "200M", "64K" or a number: tokens. Throws Error{input} for others.
[[nodiscard]] std::int64_t parse_tokens(const std::string& text);

/// "300 B", the shortest form of a number of tokens with three digits.
[[nodiscard]] std::string tokens_text(std::int64_t tokens);

/// 31641.4 as "31,641".
[[nodiscard]] std::string with_commas(double number);

/// "41.2 days, 31,641 GPU-hours, 63,282 USD at 2.00 a GPU-hour, 22,149 kWh at 700 W a GPU".
[[nodiscard]] std::string training_text(const TrainingCost& cost, const workloads::Cluster& cluster);

}  // namespace pipeweaver::planner
