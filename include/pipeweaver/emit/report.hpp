// report.html: a plan as one page for the engineer who must trust it, from a model or from measured stage times; or a
// search of one problem.
//
// The ladder and how its best rung is run, the plan and the best fixed chain under one another on one time axis, memory
// of every rank, every (partition, policy) with bound and gap, where the time goes, what the figures rest on, the
// batch, and every input. One file that loads nothing; pictures are inline SVG and need no JavaScript (which only adds
// zoom and pan, and transfers where there are many).
#pragma once

#include "pipeweaver/planner/plan.hpp"
#include "pipeweaver/planner/stage_plan.hpp"

#include <string>

namespace pipeweaver::emit {

/// Gives the page of a plan. Equal plans give equal bytes. Every text that comes from a file or the command line is
/// escaped.
[[nodiscard]] std::string report(const planner::Job& job, const planner::Batch& batch, const planner::Plan& plan);

/// Gives the page of a plan from stage times, without what those do not tell: cost basis, robustness and batch. Beside
/// the plan stands the fastest known schedule.
[[nodiscard]] std::string report(const planner::StageRequest& request, const planner::StagePlan& plan);

/// What a search was asked for.
struct SearchAsked {
    std::string strategy = "default";
    std::uint64_t seed = 1;
    std::string target;  ///< whose rules were kept; empty: none
    bool warm = false;   ///< it was given a schedule to begin with
};

/// Gives the page of a search: how it went, round by round, and the schedules it began and ended with. Pre: `found` is
/// of `problem` and has a schedule, from search::solve().
[[nodiscard]] std::string report(const schedule::Problem& problem, const SearchAsked& how, const search::Found& found);

}  // namespace pipeweaver::emit
