// What is left on the fullest GPU, against what an allocator may take where shapes vary.
#pragma once

#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/rung.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace pipeweaver::emit {

struct Room {
    std::size_t shapes = 0;   ///< of microbatches
    Bytes left{}, memory{};   ///< of the fullest GPU: what no tensor of the step takes, and all of it
    bool is_at_risk = false;  ///< less is left than varying shapes may take (emulator/reserve.hpp)
};

/// Of a rung whose microbatches have several shapes; none: they have one, or are padded to one.
[[nodiscard]] std::optional<Room> room_of(const planner::Job& job, const planner::Batch& batch,
                                          const planner::Rung& rung);

/// The room in words; nothing where there is none.
[[nodiscard]] std::string room_text(const std::optional<Room>& room);

}  // namespace pipeweaver::emit
