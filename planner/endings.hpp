// The clock of a search, counted and played back.
#pragma once

#include "pipeweaver/planner/session.hpp"

namespace pipeweaver::planner {

/// The same, which counts in `stops` what each limit answers until it ends a search. Pre: `stops` outlives it; asked by
/// one thread at a time.
[[nodiscard]] Allowance counted(const Allowance& allowance, std::vector<std::optional<std::uint64_t>>& stops);

/// Answers as one that left `ending`; without one it allows nothing. Pre: `ending` outlives it.
[[nodiscard]] Allowance again(const Ending& ending);

}  // namespace pipeweaver::planner
