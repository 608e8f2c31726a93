// A second objective: among schedules of the same makespan, one that needs less memory.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/search/found.hpp"
#include "pipeweaver/search/options.hpp"
#include "pipeweaver/search/standing.hpp"

#include <span>

namespace pipeweaver::search {

/// Takes the best of the `known` schedules by standing.hpp where it is better than `found`; those that do not run or
/// break the rules are passed over, ties go to `found`, then to the earlier. Pre: found.schedule, of this problem.
void take_known(const schedule::Replayer& replayer, const Options& options, std::span<const FoundSchedule> known,
                Found& found);

/// Makes largest_peak() smaller; among schedules with equal ones, the sum of peaks decides. Changes the schedule in
/// `found` by annealing over single steps, none of which makes it longer or breaks its rules. The number of rounds
/// depends on `found` alone (20, and one for every four that found it; 100 where that was optimal), so that (problem,
/// options, found.rounds) decide the result. `keep_going` can only stop it for good; a time limit belongs to the search
/// before, which should leave some of it. `most_rounds` may limit the rounds further. Pre: found.schedule, from solve()
/// with the same options.
void lower_memory(const schedule::Replayer& replayer, const Options& options, const Executor& execute, Found& found,
                  const KeepGoing& keep_going = {}, std::optional<std::uint64_t> most_rounds = {});

}  // namespace pipeweaver::search
