// What a step recomputes as engineers set it: by one setting for all stages, or for those of each rank.
#pragma once

#include "pipeweaver/emulator/stages.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {

/// What the stages of a step recompute: all the same, or those of each rank something of its own.
struct StepRecompute {
    bool by_rank = false;
    emulator::Recompute everywhere = emulator::Recompute::none;  ///< unless it is by rank
    /// By rank: as it is said, one for each rank; none: what costs a rank the least time of all that fits its memory.
    std::vector<emulator::Recompute> of_ranks{};

    friend bool operator==(const StepRecompute&, const StepRecompute&) = default;
};

inline const StepRecompute no_recompute{};
inline const StepRecompute recompute_by_rank{.by_rank = true};

/// "by-rank", "by-rank:full/blocks:3/none" where it is said of each rank, or the name of what every stage recomputes.
[[nodiscard]] std::string name_of(const StepRecompute& setting);

/// The setting of that name; nothing for other texts.
[[nodiscard]] std::optional<StepRecompute> step_recompute_named(std::string_view name);

/// What stages recompute under it, each once: of one by rank that is not said nothing.
[[nodiscard]] std::vector<emulator::Recompute> said_in(const StepRecompute& setting);

/// emulator::recompute_names() and "by-rank".
[[nodiscard]] std::vector<std::string> step_recompute_names();

}  // namespace pipeweaver::planner
