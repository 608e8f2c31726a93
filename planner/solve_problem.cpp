#include "pipeweaver/planner/solve_problem.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/planner/torch_rules.hpp"
#include "pipeweaver/search/lower_memory.hpp"

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;

namespace {

search::Rules require_torch_rules(const Problem& problem) {
    if (const auto why = not_expressible_in_torch(problem)) fail(ErrorKind::limit, "torch-csv: {}", *why);
    return torch_rules(problem);
}

}  // namespace

search::Found solve_problem(const Replayer& replayer, const SolveRequest& request, const Executor& execute,
                            const Allowance& allowance) {
    constexpr double share_of_makespan = 0.7;  // of the time; the rest is for the second objective
    search::Options options;
    options.strategy = request.strategy;
    options.seed = request.seed;
    options.max_rounds = request.max_rounds;
    options.starts = request.starts;
    if (request.for_torch) options.rules = require_torch_rules(replayer.problem());
    auto found = search::solve(replayer, options, execute, allowance(request.lower_memory ? share_of_makespan : 1));
    if (found.schedule && request.lower_memory) search::lower_memory(replayer, options, execute, found, allowance(1));
    if (found.schedule && request.for_torch)
        if (const auto why = breaks_torch_rules(replayer.problem(), *found.schedule))
            fail(ErrorKind::limit, "{}", *why);
    return found;
}

}  // namespace pipeweaver::planner
