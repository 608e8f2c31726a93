// One search of a given problem, with what `solve` may be asked for: a target's rules, a warm start, a second
// objective.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/search/search.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

struct SolveRequest {
    std::string strategy = "default";
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> max_rounds;
    std::string target = "free";  ///< of targets(): whose rules to keep
    bool lower_memory = false;    ///< then the largest peak, at the makespan found
    std::vector<schedule::Schedule> starts;
};

/// Searches. Seven tenths of the time go to the makespan if a second objective follows. The answer may have no
/// schedule; why_not then says why. Throws Error{limit} "NAME: why" where the target cannot run the problem, and as
/// search::solve().
[[nodiscard]] search::Found solve_problem(const schedule::Replayer& replayer, const SolveRequest& request,
                                          const Executor& execute, const Time& time);

}  // namespace pipeweaver::planner
