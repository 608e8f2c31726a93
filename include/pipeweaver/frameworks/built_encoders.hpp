// How frameworks build the encoders of multimodal models: a table for each, whose rows name their sources.
//
// Determinism  Tables alone.
#pragma once

#include "pipeweaver/workloads/built.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::frameworks {

/// The row of the first of these frameworks that has one for the family; null: none has.
[[nodiscard]] const workloads::Built* built_encoder(std::span<const std::string_view> frameworks,
                                                    std::string_view family);

/// All rows.
[[nodiscard]] std::vector<workloads::Built> built_encoders();

/// The frameworks that have rows, in the order of the tables.
[[nodiscard]] std::vector<std::string> builders();

}  // namespace pipeweaver::frameworks
