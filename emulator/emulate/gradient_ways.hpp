// A bucket of gradients in each format, priced.
#pragma once

#include "pipeweaver/emulator/gradient_traffic.hpp"
#include "pipeweaver/emulator/operators.hpp"

namespace pipeweaver::emulator {

/// Of so many parameters whose gradients `op`, a collective of the rank's tail, reduces.
[[nodiscard]] std::vector<GradientWay> ways_of(const StepInput& input, const Operator& op, RankId rank,
                                               std::int64_t parameters, std::span<const GradientFormat> formats);

}  // namespace pipeweaver::emulator
