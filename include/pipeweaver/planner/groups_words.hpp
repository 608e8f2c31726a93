// What `pipeweaver groups` is asked for by others: options of `plan` as it takes them, splits that a target launches.
#pragma once

#include "pipeweaver/base/option_values.hpp"
#include "pipeweaver/planner/host_bound.hpp"

#include <optional>
#include <string>

namespace pipeweaver::groups {
struct Placing;  // groups/placing.hpp
struct Request;  // groups/plan.hpp
}  // namespace pipeweaver::groups

namespace pipeweaver::planner {

struct Target;  // targets.hpp

struct GroupsWords {
    OptionValues words;       ///< without a split
    std::string not_there{};  ///< the first option that says something of a step and that `groups` has not; empty: none
};

/// What says nothing of a split's step is left out: layouts of shared GPUs, orders and how they are sought, what feeds
/// GPUs, the whole run.
[[nodiscard]] GroupsWords groups_words(const OptionValues& of_plan);

/// Asks for what the target launches: of one with grids (MegatronMIMO's, launch/mimo_grids.cpp) an encoder of images on
/// one stage, whole samples on each of its replicas, states shared out; else for any split. False: no grids are of
/// these groups. Pre: setup and groups are asked for.
[[nodiscard]] bool ask_for_launched(const Target& runs, groups::Request& asked);

/// The far end of the step of a split that was found for the request, launched kernel by kernel. None: none is to be
/// told, or it does not fit so.
[[nodiscard]] std::optional<HostBound> far_end(groups::Request request, const groups::Placing& placing);

}  // namespace pipeweaver::planner
