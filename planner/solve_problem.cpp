#include "pipeweaver/planner/solve_problem.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/search/lower_memory.hpp"
#include "planner/evaluate/step.hpp"
#include "planner/schedule/smaller_peak.hpp"

namespace pipeweaver::planner {

using namespace schedule;

search::Found solve_problem(const Replayer& replayer, const SolveRequest& request, const Executor& execute,
                            const Time& time) {
    search::Options options;
    options.strategy = request.strategy;
    options.seed = request.seed;
    options.max_rounds = request.max_rounds;
    options.starts = request.starts;
    options.patience = patience;
    const Target& runtime = target(request.target);
    options.rules = rules_of(runtime, replayer.problem());
    const Time first = time.fraction(request.lower_memory ? fractions.makespan : fractions.search);
    auto found = search::solve(replayer, options, execute, first.keep_going());
    const bool is_large = replayer.problem().tasks.size() > search::most_tasks_at_leisure;
    if (found.schedule)
        take_smaller_peak(replayer, runtime, policies_of(replayer.problem(), execute, is_large), options, found,
                          execute, time);
    if (found.schedule && request.lower_memory)
        search::lower_memory(replayer, options, execute, found, time.keep_going());
    if (found.schedule && runtime.breaks != nullptr)
        if (const auto why = runtime.breaks(replayer.problem(), *found.schedule)) fail(ErrorKind::limit, "{}", *why);
    return found;
}

}  // namespace pipeweaver::planner
