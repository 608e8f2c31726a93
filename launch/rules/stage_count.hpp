// How many stages torch's pipelines have, as torchtitan and NeMo AutoModel ask for them.
#pragma once

#include "pipeweaver/launch/titan.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pipeweaver::launch {

/// What is shared out.
struct Staged {
    std::int64_t layers = 0, ranks = 1;
    std::optional<std::int64_t> each{};  ///< layers of a stage at most; none: 1 or 2 stages a rank
    std::string_view called{};           ///< "layers"
    std::string_view rounds{};           ///< "up", "down": to a multiple of the ranks; else others are refused
};

/// Stages, or the rule.
struct StageCount {
    std::int64_t stages = 0;
    std::string why_not{};
};
[[nodiscard]] StageCount count_stages(const Staged& of, const TitanSchedule& schedule);

}  // namespace pipeweaver::launch
