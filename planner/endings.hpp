// The time of a search, counted and played back.
#pragma once

#include "pipeweaver/planner/session.hpp"

namespace pipeweaver::planner {

/// `time`, which counts in `stops` what each part of it that is opened answers until it ends a search. Pre: `stops`
/// outlives it, and parts are opened one after the other.
[[nodiscard]] Time counted(const Time& time, Stops& stops);

/// Time that answers as one that left `ending`; without an ending there is none. Where more parts are opened than then,
/// that throws Error{input}. Pre: `ending` outlives it.
[[nodiscard]] Time again(const Ending& ending);

}  // namespace pipeweaver::planner
