#include "planner/given_schedule.hpp"

#include "pipeweaver/base/error.hpp"
#include "planner/replicas/exchange.hpp"

#include <algorithm>

namespace pipeweaver::planner {

using namespace schedule;
using namespace emulator;
using partition::Partition;

namespace {

// A problem as it was written, with the lags of `alone` where its own are longer: its transfers waited for ports.
Problem without_waits(Problem problem, const Problem& alone) {
    for (std::size_t e = 0; e < std::min(problem.edges.size(), alone.edges.size()); ++e) {
        Duration& lag = problem.edges[e].lag;
        const Duration at_once = alone.edges[e].lag;
        if (at_once > Duration{0}) lag = std::min(lag, at_once);
    }
    return problem;
}

[[noreturn]] void refuse(const GivenSchedule& given, const std::string& why) {
    fail(
        ErrorKind::input,
        "{}: is of the problem '{}', {}: model, cluster, layout, recipe, headroom, batch, seed and costs must be those "
        "of the plan",
        given.from.string(), given.solved.file.problem.name, why);
}

MatchedSchedule match_one(const GivenSchedule& given, const Setup& setup, const Partition& partition,
                          std::size_t replica, const Microbatches& microbatches) {
    const Problem& problem = given.solved.file.problem;
    if (problem.name != problem_name(setup, partition, replica)) refuse(given, "which this request does not have");
    MatchedSchedule matched{partition, {}, given.solved.schedule};
    auto known = build(setup, partition, microbatches, {.name = problem.name});
    if (known.shortage) fail(ErrorKind::limit, "{}", known.shortage->text());
    auto can = splittable(known.cut.step);
    if (can.empty()) can.resize(known.cut.step.problem.pairs.size());  // the recipe splits no backwards
    for (const Pair& pair : problem.pairs) matched.split.push_back(pair.weight.has_value());
    if (matched.split.size() != can.size()) refuse(given, "whose tasks are others");
    for (std::size_t k = 0; k < can.size(); ++k)
        if (matched.split[k] && !can[k]) refuse(given, "whose tasks are others");
    const StepProblem step = require_step(split_backwards(known.cut.step, matched.split));
    if (fingerprint(step.problem) != fingerprint(without_waits(problem, step.problem)))
        refuse(given, "whose times or memory are others");
    return matched;
}

// Of a plan that was made under `recipe`.
MatchedSchedules match_all(const std::vector<GivenSchedule>& given, Job job, const Batch& batch, const Recipe& recipe,
                           const Partition& partition, const Assignment& by_load, const Executor& execute) {
    const bool as_it_is = job.setup->is_usual() && job.setup->recipe == recipe;
    if (!as_it_is) job.setup = std::make_shared<const Setup>(with_recipe(*job.setup, recipe));
    const Setup& planned = *job.setup;
    MatchedSchedules matched;
    matched.assignment = exchange(job, batch, partition, by_load, execute);
    for (std::size_t r = 0; r < given.size(); ++r)
        matched.replicas.push_back(match_one(given[r], planned, partition, r, matched.assignment.microbatches[r]));
    return matched;
}

}  // namespace

MatchedSchedules match(const std::vector<GivenSchedule>& given, const Job& job, const Batch& batch,
                       const Partition& partition, const Assignment& by_load, const Executor& execute) {
    const Recipe& own = job.setup->recipe;
    if (job.setup->is_usual()) return match_all(given, job, batch, own, partition, by_load, execute);
    if (own != judging(own)) {
        try {
            return match_all(given, job, batch, own, partition, by_load, execute);
        } catch (const Error&) {
            // Planned otherwise, and now emulated with more than that.
        }
    }
    return match_all(given, job, batch, judging(own), partition, by_load, execute);
}

}  // namespace pipeweaver::planner
