// Recomputation as engineers set it: what a step may be run with.
#pragma once

#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/way.hpp"

#include <vector>

namespace pipeweaver::planner {

/// none, selective, blocks:1 to blocks:L-1 and full, where L is the most blocks that a part of any stage can run again.
[[nodiscard]] std::vector<emulator::Recompute> usual_settings(const emulator::Setup& setup,
                                                              const partition::Partition& partition);

/// Those that opponents are judged with and `--recompute by-rank` chooses from: usual_settings(), but for a recipe that
/// is not serial. ZeRO-3 gathers weights beside every pass, which is replayed kernel by kernel for every setting; then
/// they are the few that its users have (torchtitan: none, selective by operator, every fourth, third or second layer,
/// full).
[[nodiscard]] std::vector<emulator::Recompute> opponent_settings(const emulator::Setup& setup,
                                                                 const partition::Partition& partition);

/// Those of opponent_settings() that the target can be told, and what the way itself says, whatever it is.
[[nodiscard]] std::vector<emulator::Recompute> settings_of(const Way& way, const Target& target);

/// What the pairs of each rank recompute; none for a rank without pairs. Pre: each rank has one setting, an index into
/// `menu`.
[[nodiscard]] std::vector<emulator::Recompute> recompute_of_ranks(const schedule::Problem& problem,
                                                                  const schedule::Schedule& schedule,
                                                                  const std::vector<emulator::Recompute>& menu);

}  // namespace pipeweaver::planner
