// Runtimes that a schedule can be for, by what they can run: a table. A new framework is a file and a row here, and one
// in emit.
#pragma once

#include "pipeweaver/schedule/problem.hpp"
#include "pipeweaver/schedule/solution.hpp"
#include "pipeweaver/search/search.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {

struct Target {
    std::string name;
    std::string option;  ///< what --target calls it: the files that it is emitted as
    std::string about;   ///< one line
    std::string folder;  ///< of its files in a plan, and the end of its problem's name; empty: it is the plan itself

    // What its steps are built from.
    bool fixed_chain = false;          ///< one chain of stages, all microbatches padded to the largest, and one
                                       ///< recomputation for the whole step
    bool input_gradient_frees = true;  ///< see emulator::StepInput
    bool buffers_for_all = false;      ///< receive buffers for all microbatches at once

    /// The first rule that a problem breaks, with the task; none: it can be run. Null: any can.
    std::optional<std::string> (*inexpressible)(const schedule::Problem& problem) = nullptr;
    /// What its schedules must keep. Null: nothing. Pre: inexpressible() has nothing to say.
    search::Rules (*rules)(const schedule::Problem& problem) = nullptr;
    /// The rule that an order breaks, with the task, or none. Null: none ever.
    std::optional<std::string> (*breaks)(const schedule::Problem& problem,
                                         const schedule::Schedule& schedule) = nullptr;
};

/// "free", which runs whatever the problem allows, and after it the others.
[[nodiscard]] const std::vector<Target>& targets();

/// The target of that name. Pre: there is one.
[[nodiscard]] const Target& target(std::string_view name);

/// What --target may be told.
[[nodiscard]] std::vector<std::string> target_options();

/// The name of the target that --target calls so; empty: "free". Pre: of target_options().
[[nodiscard]] std::string target_called(std::string_view option);

/// The target's rules for a problem. Throws Error{limit} "NAME: why" where it cannot run it.
[[nodiscard]] search::Rules rules_of(const Target& target, const schedule::Problem& problem);

}  // namespace pipeweaver::planner
