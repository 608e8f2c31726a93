// Operators priced: what the cost database says of each alone, and what a step makes of that.
#pragma once

#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/emulator/pass_cost.hpp"
#include "pipeweaver/emulator/training.hpp"

#include <functional>
#include <span>
#include <vector>

namespace pipeweaver::emulator {

/// What the database says of an operator alone.
[[nodiscard]] costdb::Cost ask(const costdb::CostDatabase& costs, const Operator& op);

/// A factor on an operator's time beside the in-situ ones.
using TimeFactor = std::function<double(const Operator&)>;

/// Asks for the time of every operator. Traffic on Stream::copy goes over `training.host_link`. Throws as the database
/// does.
[[nodiscard]] PricedOperators price(std::vector<Operator> operators, const costdb::CostDatabase& costs,
                                    const InSituFactors& factors, const Training& training,
                                    const TimeFactor& what_if = {});

/// The cost alone, of operators under the default training.
[[nodiscard]] PassCost price(std::span<const Operator> operators, const costdb::CostDatabase& costs,
                             const InSituFactors& factors);

}  // namespace pipeweaver::emulator
