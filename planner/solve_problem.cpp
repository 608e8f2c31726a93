#include "pipeweaver/planner/solve_problem.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/search/lower_memory.hpp"

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

search::Found solve_problem(const Replayer& replayer, const SolveRequest& request, const Executor& execute,
                            const Allowance& allowance) {
    constexpr double share_of_makespan = 0.7;  // of the time; the rest is for the second objective
    search::Options options{request.strategy, request.seed, request.max_rounds, {}, request.starts, {}};
    const Target& runtime = target(request.target);
    options.rules = rules_of(runtime, replayer.problem());
    auto found = search::solve(replayer, options, execute, allowance(request.lower_memory ? share_of_makespan : 1));
    if (found.schedule && request.lower_memory) search::lower_memory(replayer, options, execute, found, allowance(1));
    if (found.schedule && runtime.breaks != nullptr)
        if (const auto why = runtime.breaks(replayer.problem(), *found.schedule)) fail(ErrorKind::limit, "{}", *why);
    return found;
}

}  // namespace pipeweaver::planner
