// Recomputation as engineers set it, and the fastest setting of a step under a known policy: one for all stages, or one
// for each rank.
//
// Pruning      Under a fixed order more blocks that run again make no task shorter, so of blocks:N only the smallest N
//              that every rank has room for is replayed; it is found by memory alone. On shared ports a longer task
//              can, rarely, make a schedule shorter (emulator/ports.hpp); such a gain is not looked for. Policies whose
//              order times decide are applied under every setting.
// Determinism  A function of the arguments.
#pragma once

#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/partition/partition.hpp"

#include <optional>
#include <string>
#include <string_view>
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

/// The name of the setting under which every rank takes what costs it the least time and fits.
inline constexpr std::string_view by_rank_name = "by-rank";

/// A step under a policy and a setting, as it runs on shared ports.
struct SettingRun {
    std::string recompute;                     ///< name_of() the setting, or "by-rank"
    std::vector<emulator::Recompute> by_rank;  ///< of each rank, under "by-rank" alone
    schedule::Schedule schedule;
    Duration makespan{};
    std::vector<Bytes> peak;  ///< per rank
    emulator::PortWaits waits;
};

/// The shortest of all uniform settings and, where that is wanted, by-rank with a policy of a fixed order; ties go to
/// the smaller peak, then to the earlier, by-rank being the last. Nothing where none fits or the policy does not apply;
/// `why_not` says so. Pre: the step was built with `settings` as its modes, and is split where the policy needs it.
/// Throws Error{input} for an unknown policy.
[[nodiscard]] std::optional<SettingRun> fastest_setting(const emulator::StepProblem& step, std::string_view policy,
                                                        const std::vector<emulator::Recompute>& settings,
                                                        std::string& why_not, bool by_rank = true);

/// The one setting of that name. Nothing where it does not fit, or is not there: not among `settings`, or by-rank with
/// a policy without a fixed order. Pre and throws as fastest_setting().
[[nodiscard]] std::optional<SettingRun> run_setting(const emulator::StepProblem& step, std::string_view policy,
                                                    const std::vector<emulator::Recompute>& settings,
                                                    std::string_view name);

}  // namespace pipeweaver::planner
