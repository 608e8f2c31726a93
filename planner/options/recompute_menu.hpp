// What every pass of a plan may choose to compute again: by option, or by what its target carries.
#pragma once

#include "pipeweaver/base/options.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/targets.hpp"

#include <string>
#include <vector>

namespace pipeweaver::planner {

/// Adds `--recompute`, the menu of plans.
void add_recompute_menu(OptionTable& options, std::string& menu);

/// The settings that `text` names, in their order; empty for "auto" and an empty text. Throws Error{input} for what is
/// unknown, there twice, or for whole steps alone, and Error{limit} where the target's passes cannot carry it.
[[nodiscard]] std::vector<emulator::Recompute> recompute_menu(const std::string& text, const Target& target);

/// What passes of the job's plans choose from: what it says, else none, half and full, and selective where the target
/// carries it.
[[nodiscard]] std::vector<emulator::Recompute> menu_of(const Job& job);

}  // namespace pipeweaver::planner
