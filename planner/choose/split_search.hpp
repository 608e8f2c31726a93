// Whether to split backwards into input and weight gradients: searches a step both ways and keeps the faster.
#pragma once

#include "pipeweaver/emulator/split.hpp"
#include "planner/evaluate/evaluate.hpp"

namespace pipeweaver::planner {

/// What is known of a step before the search.
struct Searchable {
    const emulator::StepProblem* whole = nullptr;
    search::Bound bound = {};                         ///< bound_of_every_choice(), if it may be split
    std::vector<schedule::Schedule> starts;           ///< of the step
    std::optional<emulator::StepProblem> split = {};  ///< split_step()
    std::vector<schedule::Schedule> split_starts = {};
};

/// With the schedules of all policies that apply as starts; `split`: split_step(), or none.
[[nodiscard]] Searchable searchable(const Evaluation& known, std::optional<emulator::StepProblem> split);

struct Searched {
    search::Found found;
    bool split = false;  ///< whether `found` is of Searchable::split
};

/// When a search both ways must end, when its first part must, and when the second must be ahead of the first.
struct Limits {
    search::KeepGoing all, first, half;
};
[[nodiscard]] Limits limits(const Allowance& allowance, double share);

/// Automatic: a sixth of the time for whole backwards, the rest for split ones, which win nearly always. Where they are
/// not shorter at half of the time and after a few rounds (memory is scarce: I takes more than B), whole backwards get
/// the rest. The faster is taken, whole ones in a tie. The searches know nothing of each other, so that each is a
/// function of the step and its rounds. The bound of what is found holds for every choice of backwards to split.
[[nodiscard]] Searched search_split(const Searchable& known, Split split, const search::Options& options,
                                    const Executor& execute, const Limits& limits);

/// A step with split backwards and its schedule, those backwards whole again that can be without changing any start, in
/// what was found and in what the search began with. Changes both, not their makespans, and forgets the near ones. Pre:
/// found.schedule is of `split`, split_step(whole).
[[nodiscard]] emulator::StepProblem join_needless(const emulator::StepProblem& whole,
                                                  const emulator::StepProblem& split, search::Found& found);

}  // namespace pipeweaver::planner
