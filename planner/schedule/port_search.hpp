// Searches of a step as they count: searches know transfers that go at once, and what they find shares ports.
#pragma once

#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/search/search.hpp"

namespace pipeweaver::planner {

/// Whether a schedule of this makespan loses more than margins.ports of it by the waits that are in it.
[[nodiscard]] bool loses_much(Duration makespan, Duration lost);

/// search::solve() of the step as if every transfer went at once, and what that found on shared ports: `replay` and the
/// makespans of alternatives are with waits, and where an alternative or one of options.starts is now the shortest, it
/// is the schedule: none of them is shorter than what comes back. Bound and history stay those of the search. Pre:
/// `starts` are schedules of the step, whether they run or not.
[[nodiscard]] search::Found search_on_ports(const emulator::StepProblem& step, const search::Options& options,
                                            const Executor& execute, const search::KeepGoing& keep_going);

/// Where `found` loses much, another search, of the step with the lags that its schedule has led to, beginning with
/// options.starts and this schedule; the better of the two on shared ports, `found` in a tie. As many rounds as the
/// first may have; none where `keep_going` says so at once. The bound stays that of `found`.
[[nodiscard]] search::Found search_again(const emulator::StepProblem& step, search::Found found,
                                         search::Options options, const Executor& execute,
                                         const search::KeepGoing& keep_going);

}  // namespace pipeweaver::planner
