// Whether to split backwards into input and weight gradients: searches a step both ways and keeps the faster.
#pragma once

#include "pipeweaver/emulator/ports.hpp"
#include "pipeweaver/emulator/split.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/search/search.hpp"
#include "planner/evaluate/step.hpp"

namespace pipeweaver::planner {

/// A step as a search may take it.
struct Searchable {
    const emulator::StepProblem* whole = nullptr;
    const emulator::StepProblem* split = nullptr;  ///< null: backwards are not split
    search::Bound bound = {};                      ///< of every choice of backwards to split, where some may be
    std::vector<schedule::Schedule> starts;        ///< of the whole step
    std::vector<schedule::Schedule> split_starts = {};
    bool have_policies = false;     ///< all policies' schedules are among the starts
    bool fastest_is_split = false;  ///< of the policies
    bool is_crowded = false;        ///< the fastest policy loses much to ports (search_again()): a search will, too
};

/// With the schedules of all policies that apply as starts. The step outlives it.
[[nodiscard]] Searchable searchable(const Step& step, bool may_split);

struct Searched {
    search::Found found;
    bool split = false;  ///< whether `found` is of Searchable::split
};

/// Bounds what was found, and its history, by a bound that holds for it.
void set_bound(search::Found& found, const search::Bound& bound);

/// Automatic: only whole backwards where all I and W together take more than 3 % longer, unless the fastest policy
/// splits some. Else a sixth of the time for whole ones, the rest for split ones, which then win nearly always. Where
/// they are not shorter at half of the time and after a few rounds (memory is scarce: I takes more than B), whole
/// backwards get the rest. The faster is taken, whole ones in a tie. The searches know nothing of each other, so that
/// each is a function of the step and its rounds. All of that is with shared ports, and what loses much to them is
/// searched once more (search_again()), for which a third of the time is kept where policies lose much. The bound of
/// what is found holds for every choice of backwards to split.
[[nodiscard]] Searched search_split(const Searchable& known, Split split, const search::Options& options,
                                    const Executor& execute, const Time& time);

/// A step with split backwards and its schedule, those backwards whole again that can be without changing any start, in
/// what was found and in what the search began with. Changes both, and forgets the near ones; no makespan becomes
/// longer: where whole backwards would make transfers meet at a port, all stay split. Pre: found.schedule is of
/// `split`, split_step(whole).
[[nodiscard]] emulator::StepProblem join_needless(const emulator::StepProblem& whole,
                                                  const emulator::StepProblem& split, search::Found& found);

// Searches of a step as they count: searches know transfers that go at once, and what they find shares ports.

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
