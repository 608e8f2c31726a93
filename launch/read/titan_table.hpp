// The settings of torchtitan by name: a table.
#pragma once

#include "pipeweaver/launch/titan.hpp"

#include <span>
#include <string_view>

namespace pipeweaver::launch {

/// Where a setting goes. A bool is set to `value`; of numbers `least` is the smallest allowed.
struct TitanRow {
    std::string_view name;
    TitanMember member;
    std::string_view choices{};
    bool value = true;  ///< what a switch sets
    std::int64_t least = 1;
};

[[nodiscard]] std::span<const TitanRow> titan_rows();

}  // namespace pipeweaver::launch
