// The parts of report.html. Every function returns HTML in which texts are escaped already.
#pragma once

#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/emit/html.hpp"
#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::emit::report_parts {

using html::axis_units, html::last_label, html::Parts, html::escape, html::figure;
using html::Colored, html::color_legend;
using html::fact, html::fact_table, html::heading, html::folded, html::row, html::legend_entry;
using html::most_rows_open, html::Table, html::head, html::number, html::first_items;

inline constexpr double last_narrow_label = 85;  ///< last_label where the page is narrow

/// Fills emit/report/report_template.html.
[[nodiscard]] std::string filled_page(const Parts& parts);

[[nodiscard]] std::string gap_figure(Duration found, Duration bound, std::string_view of);

/// The rank that holds most, behind the name of its `replica` where there are several ("replica 3, ").
[[nodiscard]] std::string fullest_rank(const schedule::Problem& problem, const std::vector<Bytes>& peaks,
                                       std::string_view replica = "");

/// The HTML that stands above a schedule's picture.
[[nodiscard]] std::string caption(std::string_view name, std::string_view what, Duration makespan);

/// How a search ended.
[[nodiscard]] std::string found_fact(std::string_view name, const search::Found& found);

/// What all ranks do together when the last of them has ended.
struct StepEnd {
    Duration start{}, duration{};
};

/// A schedule to be drawn.
struct Drawn {
    std::string id;       ///< of the element
    std::string heading;  ///< HTML
    const schedule::Problem* problem = nullptr;
    const schedule::Schedule* schedule = nullptr;
    const schedule::Replay* replay = nullptr;
    std::vector<std::string> groups{};   ///< per task: what its colour stands for; empty: the modules of its stage
    std::vector<std::string> modes{};    ///< names of the memory modes, by number; empty: not known
    std::optional<StepEnd> optimizer{};  ///< none: the schedule ends without one
};

/// A time's place on the axis, in axis_units for the horizon.
[[nodiscard]] std::int64_t on_axis(Duration time, Duration horizon);

/// Transfers between ranks, from the end of the task that sends to the arrival. Too many to be read at once (more than
/// most_transfers for each rank) are drawn where the page is zoomed in so far that fewer are in view.
struct Transfers {
    bool too_many = false;
    std::string svg{};                ///< empty without transfers
    std::vector<std::string> sent{};  ///< per task, for people: where to, and when it is there; empty: nothing
};
inline constexpr std::size_t most_transfers = 50;
[[nodiscard]] Transfers transfers(const Drawn& drawn, const std::vector<schedule::TaskCost>& costs, Duration horizon);

/// The schedules under one another with their legend.
[[nodiscard]] std::string schedule_pictures(const std::vector<Drawn>& all, Duration horizon);

/// Parts of a page: the schedules on one time axis, up to the end of the longest, and the memory of the ranks of one.
[[nodiscard]] Parts picture_parts(const std::vector<Drawn>& all, const Drawn& plan);

/// What stands below a table of schedules: the policies that do not apply, the first of them open. Empty without lines.
[[nodiscard]] std::string not_applicable_list(const std::vector<std::string>& lines);

/// How a search went: best and bound over its rounds, what found each improvement, and all of them in a table. Pre:
/// found.schedule; found.history is not empty.
[[nodiscard]] std::string progress(const search::Found& found);

/// The table of every (partition, policy), the fastest ten open.
[[nodiscard]] std::string pair_table(const planner::Plan& plan);

/// What ranks do: one part of their time, with the class c<color>.
struct TimePart {
    std::string name;
    std::size_t color = 0;
    std::vector<Duration> ranks;
};
inline constexpr std::size_t waiting_color = 8;

/// Without those that no rank has.
[[nodiscard]] std::vector<TimePart> parts_that_occur(std::vector<TimePart> parts);

/// Bars and table of where the time of each rank goes, in the parts that occur.
[[nodiscard]] std::string time_of_ranks(const std::vector<TimePart>& parts, Duration whole);

/// What kinds of tasks are called, in their order.
inline constexpr std::array<const char*, 5> kind_names{"forward", "backward", "input gradient", "weight gradient",
                                                       "other"};

/// What each rank does in a solved problem, by the kinds of its tasks; the last part is waiting.
[[nodiscard]] std::vector<TimePart> times_by_kind(const schedule::Problem& problem, const search::Found& found);

/// What each rank of the slowest replica does from the step's start to its end.
[[nodiscard]] std::string time_of_ranks(const planner::Plan& plan);

/// Busy time by operator class and by what its costs rest on.
[[nodiscard]] std::string time_by_basis(const planner::Plan& plan);

/// Whether the plan still wins over its usual opponents under wrong costs.
[[nodiscard]] std::string robustness(const planner::Plan& plan);

/// The ladder, what it rests on and what was left out. Pre: it has rungs.
[[nodiscard]] std::string ladder(const planner::Job& job, const planner::Batch& batch, const planner::Plan& plan);

/// What is to be done for the ladder's best rung, the commands that print the steps, the plan's stages, and the files
/// of its folder.
[[nodiscard]] std::string how_to_run(const planner::Job& job, const planner::Plan& plan);

/// The stages by rank and chunk: layers, and what is recomputed.
[[nodiscard]] std::string stage_section(const planner::Job& job, const planner::Plan& plan);

/// Lists all layouts that fit, the fastest first and the chosen one marked, and why others do not.
[[nodiscard]] std::string layouts(const planner::LayoutChoice& choice);

/// How the microbatches were given to the replicas, and what became of each; the slowest is marked.
[[nodiscard]] std::string replicas(const planner::Job& job, const planner::Batch& batch, const planner::Plan& plan);

[[nodiscard]] std::string batch_section(const planner::Batch& batch, const planner::Plan& plan);
/// A section for each target that has a schedule of its own.
[[nodiscard]] std::string targets(const planner::Plan& plan);
/// The section of one target, with what is known of its schedule below its heading.
[[nodiscard]] std::string target_section(const planner::Target& target, std::string_view known);
/// The schedule that a target wants, in words: "one that PyTorch runs"; "any" for a target that runs the plan itself.
[[nodiscard]] std::string schedule_wanted(const planner::Target& target);
[[nodiscard]] std::string inputs(const planner::Job& job, const planner::Batch& batch, const planner::Plan& plan);

}  // namespace pipeweaver::emit::report_parts
