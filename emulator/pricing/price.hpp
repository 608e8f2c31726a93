// Operators priced: what the cost database says of each alone, and what a step makes of that.
#pragma once

#include "pipeweaver/emulator/in_situ.hpp"
#include "pipeweaver/emulator/pass_cost.hpp"
#include "pipeweaver/emulator/recipe.hpp"

#include <functional>
#include <span>
#include <vector>

namespace pipeweaver::emulator {

/// What the database says of an operator alone.
[[nodiscard]] costdb::Cost ask(const costdb::CostDatabase& costs, const Operator& op);

/// What a step makes of the time alone.
[[nodiscard]] double in_situ_factor(const Operator& op, const InSituFactors& factors, const Recipe& recipe);

/// A factor on an operator's time beside the in-situ ones.
using TimeFactor = std::function<double(const Operator&)>;

/// Asks for the time of every operator. Traffic on Stream::copy goes over `recipe.host_link`. Throws as the database
/// does.
[[nodiscard]] PricedOperators price(std::vector<Operator> operators, const costdb::CostDatabase& costs,
                                    const InSituFactors& factors, const Recipe& recipe, const TimeFactor& what_if = {});

/// The cost alone, of operators under the default training.
[[nodiscard]] PassCost price(std::span<const Operator> operators, const costdb::CostDatabase& costs,
                             const InSituFactors& factors);

}  // namespace pipeweaver::emulator
