// What `pipeweaver groups` is asked for by others: options of `plan` as it takes them, splits that a target launches.
#pragma once

#include "pipeweaver/base/option_values.hpp"
#include "pipeweaver/planner/host_bound.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::groups {
struct Placing;  // groups/placing.hpp
struct Request;  // groups/plan.hpp
}  // namespace pipeweaver::groups

namespace pipeweaver::planner {

struct Target;           // targets.hpp
struct WorkloadOptions;  // workload_options.hpp

struct GroupsWords {
    OptionValues words;       ///< without a split
    std::string not_there{};  ///< the first option that says something of a step and that `groups` has not; empty: none
};

/// What says nothing of a split's step is left out: layouts of shared GPUs, orders and how they are sought, what feeds
/// GPUs, the whole run.
[[nodiscard]] GroupsWords groups_words(const OptionValues& of_plan);

/// What a split is planned for, as `groups` draws it.
struct DrawnForGroups {
    std::string name;  ///< "vlm-mix (seed 1)"
    std::size_t samples = 0;
    std::vector<workloads::Microbatch> microbatches;
};

/// Pre: a batch or a data set is asked for. Throws as WorkloadOptions::read().
[[nodiscard]] DrawnForGroups drawn_for_groups(const WorkloadOptions& asked, const workloads::Model& model,
                                              std::int64_t seed);

/// What a split is planned for, without its cluster, in one line of JSON: options and what they are told, as far as it
/// is not the usual. `words`: of `groups`, or of GroupsWords.
[[nodiscard]] std::string planned_for(const OptionValues& words);

/// Sets options as planned_for() says them, `name` in errors. Throws Error{input}.
void take_planned(const std::string& name, const std::string& text, WorkloadOptions& asked, std::int64_t& seed);

/// Asks for what the target launches: of one with grids (MegatronMIMO's, launch/mimo_grids.cpp) an encoder of images on
/// one stage, whole samples on each of its replicas, states shared out; else for any split. False: no grids are of
/// these groups. Pre: setup and groups are asked for.
[[nodiscard]] bool ask_for_launched(const Target& runs, groups::Request& asked);

/// The far end of the step of a split that was found for the request, launched kernel by kernel. None: none is to be
/// told, or it does not fit so.
[[nodiscard]] std::optional<HostBound> far_end(groups::Request request, const groups::Placing& placing);

}  // namespace pipeweaver::planner
