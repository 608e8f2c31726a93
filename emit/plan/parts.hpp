// What several answers have in common: what was asked, how a model is cut, where busy time goes, what transfers wait,
// what the robust choice gave up, which policies do not apply, and the files of a schedule.
#pragma once

#include "pipeweaver/base/files.hpp"
#include "pipeweaver/emit/targets.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/stage_plan.hpp"

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emit {

/// Names a user's database; null: the embedded one alone is used.
[[nodiscard]] nlohmann::ordered_json costs_json(const std::optional<planner::CostFile>& costs);

/// Adds what was asked in place of the model's rules for microbatches, and how many samples were dropped.
void add_rules(nlohmann::ordered_json& json, const planner::Job& job, const planner::Batch& batch);

/// What a GPU has, holds at its peak, and holds all the time.
[[nodiscard]] nlohmann::ordered_json peak_json(Bytes capacity, Bytes peak, const emulator::StaticMemory& fixed);

/// "vlm on 16 x h100-sxm, tp 2 pp 4 dp 2".
[[nodiscard]] std::string setup_text(const emulator::Setup& setup);

/// "64 samples in 8 microbatches", with what of them is not taken.
[[nodiscard]] std::string batch_text(const planner::Batch& batch);

/// Of all microbatches, "12 items".
[[nodiscard]] std::string items_text(const planner::Batch& batch);

/// How a model is cut: chains with their stages, numbered through all of them.
[[nodiscard]] nlohmann::ordered_json partition_json(const partition::Partition& partition,
                                                    const workloads::Model& model);

/// "vit: tp 1 x 8 copies, hybrid", of each module whose copies share the GPUs of a rank.
[[nodiscard]] std::vector<std::string> layout_lines(const partition::Partition& partition,
                                                    const workloads::Model& model);

/// What each copy of a chain takes of a unit; none: all GPUs of a rank run the chain together, or the unit has no work
/// there.
[[nodiscard]] std::vector<emulator::Share> shares_of_unit(const planner::Job& job,
                                                          const partition::Partition& partition, std::size_t chain,
                                                          const emulator::Unit& unit);

/// The pieces of a share, one behind the other.
[[nodiscard]] std::vector<emulator::Piece> pieces_of(const emulator::Share& share);

/// The partitions that were judged beside the one taken: an array.
[[nodiscard]] nlohmann::ordered_json alternatives_json(const planner::PartitionChoice& choice);

/// "12 not tried: the budget was over; ...": what time left out of a choice of layouts. Pre: it was cut short.
[[nodiscard]] std::string cut_short_text(const planner::LayoutChoice& choice);

/// The plan as a row beside the known schedules, called "plan".
[[nodiscard]] planner::Baseline as_baseline(const planner::Plan& plan);

/// "balanced, interleaved, 4 chunks, recompute blocks:2": an opponent, or a policy on a partition.
[[nodiscard]] std::string words_of(const planner::Baseline& baseline);

/// What the plan's passes recompute, in a word: "by pass"; of a plan that is an opponent's, that one's setting.
[[nodiscard]] std::string recompute_of(const planner::Plan& plan);

/// Empty where it is no opponent's.
[[nodiscard]] std::string recompute_of(const planner::Baseline& baseline);

/// ", recompute by-rank" of an opponent that the same policy on the same partition is beside; else empty.
[[nodiscard]] std::string told_apart(const planner::Robustness& robustness, const planner::Gain& gain);

/// What costs rest on, as answers list it.
inline constexpr std::array bases{costdb::Basis::exact, costdb::Basis::interpolated, costdb::Basis::extrapolated,
                                  costdb::Basis::modelled};

/// The part of busy time that goes to a class of operators.
[[nodiscard]] double of_class(const emulator::TimeShares& shares, std::size_t operator_class);

/// Says where busy time goes and what its costs rest on, in two lines.
[[nodiscard]] std::string shares_text(const emulator::TimeShares& shares);

/// The `share_of_time` of plan.json and emulation.json.
[[nodiscard]] nlohmann::ordered_json shares_json(const emulator::TimeShares& shares);

/// Adds `modelled`, where the step rests on a device that is known by its peaks alone: the device, and how many times
/// its length the step may take; and `anchor`, where one corrects it.
void add_modelled(nlohmann::ordered_json& json, const emulator::Setup& setup);

/// The `training` of plan.json and emulation.json: what all tokens of the job take at that pace.
[[nodiscard]] nlohmann::ordered_json training_json(const planner::Job& job, Duration step, std::int64_t tokens_of_step);

/// The part of what is padded that is padding.
[[nodiscard]] double padded_share(std::int64_t real, std::int64_t padded);

/// The text with its end; nothing where there is none.
[[nodiscard]] inline std::string line(const std::string& text) { return text.empty() ? text : text + "\n"; }

/// What transfers wait for ports, half a sentence; empty where none waits.
[[nodiscard]] std::string waits_text(const emulator::PortWaits& waits);

/// Adds `port_waits`, where some transfer waits.
void add_waits(nlohmann::ordered_json& json, const emulator::PortWaits& waits);

/// What the robust choice gave up and gained, a sentence; empty if there was nothing to choose from.
[[nodiscard]] std::string choice_text(const planner::RobustChoice& choice);

/// How often the plan wins against something under wrong costs, and by how much.
[[nodiscard]] nlohmann::ordered_json gain_json(const planner::Gain& gain);

/// The `choice` of plan.json.
[[nodiscard]] nlohmann::ordered_json choice_json(const planner::RobustChoice& choice);

/// The policies that do not apply, alike ones in one line: "1f1b on dip, megatron with 2 chunks: why", in the order in
/// which policies were tried.
[[nodiscard]] std::vector<std::string> not_applicable(const std::vector<planner::NotApplicable>& pairs);

/// "1f1b: why".
[[nodiscard]] std::vector<std::string> not_applicable(const std::vector<planner::PolicyRun>& policies);

/// The lines under a heading; empty without lines.
[[nodiscard]] std::string not_applicable_text(const std::vector<std::string>& lines);

/// "torch/schedule.csv": the file of a plan that holds the schedule of a target that has one of its own.
[[nodiscard]] std::string schedule_file(const planner::Target& target);

/// Whether the schedule that the target has of its own is for the first of several replicas, and not for all.
[[nodiscard]] bool is_of_first_alone(const planner::Plan& plan, const planner::Target& target);

/// ", for every replica", or of the first alone; empty where there is one.
[[nodiscard]] std::string_view for_which_replicas(const planner::Plan& plan, const planner::Target& target);

/// The plan's makespan that such a schedule is held against: of the same replica or, where it is every replica's, of
/// the slowest.
[[nodiscard]] Duration compared_with(const planner::Plan& plan, const planner::Target& target);

/// Which rows of targets() write a schedule: those of the planner's target `of`.
struct EmittedTo {
    std::string of;
    bool trace = true;
    bool by_rank = false;                 ///< action lists of each rank alone
    std::optional<Duration> optimizer{};  ///< as ToEmit's
};

/// Adds the files of a schedule below `folder`: problem.json.gz, solution.json (which names the problem's SHA-256), and
/// what the rows make of it. `actions` may be null. Pre: found.schedule.
void add_schedule(std::vector<FileToWrite>& files, const std::filesystem::path& folder, const EmittedTo& emitted,
                  const schedule::Problem& problem, const search::Found& found, const ActionLists* actions = nullptr);

/// Removes what an older plan left in `folder` and this one did not write: its files in replica-NNN/ and targets', and
/// those folders if nothing else is in them. Other files stay. Throws Error{io}. Pre: `written` is sorted.
void remove_older_plan(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& written);

/// Removes the same from the targets' folders alone, for a plan from stage times, which has no replicas. Throws
/// Error{io}. Pre: `written` is sorted.
void remove_older_targets(const std::filesystem::path& folder, const std::vector<std::filesystem::path>& written);

}  // namespace pipeweaver::emit
