// Options of `plan` as `pipeweaver groups` takes them.
#pragma once

#include "pipeweaver/base/option_values.hpp"

#include <string>

namespace pipeweaver::planner {

struct GroupsWords {
    OptionValues words;       ///< without a split
    std::string not_there{};  ///< the first option that says something of a step and that `groups` has not; empty: none
};

/// What says nothing of a split's step is left out: layouts of shared GPUs, orders and how they are sought, what feeds
/// GPUs, the whole run.
[[nodiscard]] GroupsWords groups_words(const OptionValues& of_plan);

}  // namespace pipeweaver::planner
