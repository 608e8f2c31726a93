// A cut in the terms of frameworks that build one row of stages: layers of the language model for every stage, chunk by
// chunk, and encoders in front of it.
//
//   ranks 4, layers 0 14 14 14 14 14 14 14     stage k is on rank k % 4: rank 0 has stages 0 and 4
#pragma once

#include "pipeweaver/partition/said_layers.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::launch {

struct Split {
    std::int64_t ranks = 1;              ///< pipeline ranks; a divisor of the number of stages
    std::vector<std::int64_t> layers{};  ///< of the language model, by stage
    partition::SaidLayers encoders{};  ///< modules in front of it: layers by stage, as many stages; none: as they come
    partition::SaidLayers generators{};  ///< modules behind it, likewise

    std::int64_t stages() const { return static_cast<std::int64_t>(layers.size()); }
    std::int64_t chunks() const { return stages() / ranks; }
    std::int64_t depth() const;  ///< layers of the language model
};

/// What `said` says of the model. Pre: said by partition::said_layers(), or accepted by partition::cut_by_layers().
[[nodiscard]] Split split_of(const workloads::Model& model, const partition::SaidLayers& said, std::int64_t ranks);

/// The module, stage and rule where a module beside the language model does not lie where frameworks build it:
/// encoders whole on the first stage, generators whole on the last. None: all do.
[[nodiscard]] std::optional<std::string> why_not_usual(const Split& split);

}  // namespace pipeweaver::launch
