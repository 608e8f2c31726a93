// Recomputation as engineers set it: what a step may be run with.
#pragma once

#include "pipeweaver/base/options.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/way.hpp"

#include <optional>
#include <string>
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

/// What the pairs of each rank recompute; none for a rank without pairs. Pre: each rank has one setting, an index into
/// `menu`.
[[nodiscard]] std::vector<emulator::Recompute> recompute_of_ranks(const schedule::Problem& problem,
                                                                  const schedule::Schedule& schedule,
                                                                  const std::vector<emulator::Recompute>& menu);

// What every pass of a plan may choose to compute again: by option, or by what its target carries.

/// Adds `--recompute`, the menu of plans.
void add_recompute_menu(OptionTable& options, std::string& menu);

/// The settings that `text` names, in their order; empty for "auto" and an empty text. Throws Error{input} for what is
/// unknown, there twice, or for whole steps alone, and Error{limit} where the target's passes cannot carry it.
[[nodiscard]] std::vector<emulator::Recompute> recompute_menu(const std::string& text, const Target& target);

/// Throws Error{input} where the partition's file, which may be of what was launched, has memory modes that no pass of
/// a plan chooses.
void require_for_passes(const std::vector<emulator::Recompute>& menu);

/// Throws Error{limit} where the menu that `who` says (an option, a file) has offload and passes of the target carry
/// none.
void require_offload_carried(const std::vector<emulator::Recompute>& menu, const std::string& who,
                             const Target& target);

/// The job with passes that offload nothing, and choose from all else; none: no pass of it may offload, or there is
/// nothing else.
[[nodiscard]] std::optional<Job> keeping_all(const Job& job);

/// What passes of the job's plans choose from: what it says, else none, half and full, selective where the target
/// carries it, and offload where the job does.
[[nodiscard]] std::vector<emulator::Recompute> menu_of(const Job& job);

}  // namespace pipeweaver::planner
