// What a step recomputes as engineers set it: by one setting for all stages, or for those of each rank.
#pragma once

#include "pipeweaver/emulator/stages.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {

/// What the stages of a step recompute: all the same, or those of each rank what costs it the least time of all that
/// fits its memory.
struct StepRecompute {
    bool by_rank = false;
    emulator::Recompute everywhere = emulator::Recompute::none;  ///< unless it is by rank

    friend bool operator==(const StepRecompute&, const StepRecompute&) = default;
};

inline constexpr StepRecompute no_recompute{};
inline constexpr StepRecompute recompute_by_rank{.by_rank = true};

/// "by-rank", or the name of what every stage recomputes.
[[nodiscard]] std::string name_of(const StepRecompute& setting);

/// The setting of that name; nothing for other texts.
[[nodiscard]] std::optional<StepRecompute> step_recompute_named(std::string_view name);

/// emulator::recompute_names(), and "by-rank".
[[nodiscard]] std::vector<std::string> step_recompute_names();

}  // namespace pipeweaver::planner
