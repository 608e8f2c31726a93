#include "planner/given_schedule.hpp"

#include "pipeweaver/base/error.hpp"
#include "pipeweaver/partition/partitioners.hpp"

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

MatchedSchedule match_one(const GivenSchedule& given, const Setup& setup, const std::vector<Partition>& partitions,
                          const Microbatches& microbatches, std::size_t replica) {
    const Problem& problem = given.solved.file.problem;
    const auto refuse = [&](const std::string& why) {
        fail(ErrorKind::input,
             "{}: is of the problem '{}', {}: model, cluster, layout, recipe, headroom, batch, seed and costs must "
             "be those of the plan",
             given.from.string(), problem.name, why);
    };
    const auto found = std::find_if(partitions.begin(), partitions.end(), [&](const Partition& partition) {
        return problem_name(setup, partition, replica) == problem.name;
    });
    if (found == partitions.end()) refuse("which this request does not have");
    MatchedSchedule matched{*found, {}, given.solved.schedule};
    auto known = build(setup, *found, partition::units(*found, setup.model, microbatches), {.name = problem.name});
    if (known.shortage) fail(ErrorKind::limit, "{}", known.shortage->text());
    auto can = splittable(known.cut.step);
    if (can.empty()) can.resize(known.cut.step.problem.pairs.size());  // the recipe splits no backwards
    for (const Pair& pair : problem.pairs) matched.split.push_back(pair.weight.has_value());
    if (matched.split.size() != can.size()) refuse("whose tasks are others");
    for (std::size_t k = 0; k < can.size(); ++k)
        if (matched.split[k] && !can[k]) refuse("whose tasks are others");
    const StepProblem step = require_step(split_backwards(known.cut.step, matched.split));
    if (fingerprint(step.problem) != fingerprint(without_waits(problem, step.problem)))
        refuse("whose times or memory are others");
    return matched;
}

// Of a plan that was made under `planned`.
std::vector<MatchedSchedule> match_all(const std::vector<GivenSchedule>& given, const Setup& planned,
                                       const std::optional<Partition>& partition, const Microbatches& batch,
                                       const std::vector<Microbatches>& replicas) {
    const auto partitions = partition ? std::vector{*partition} : partition::partitions(planned, batch);
    std::vector<MatchedSchedule> matched;
    for (std::size_t r = 0; r < replicas.size(); ++r)
        matched.push_back(match_one(given[r], planned, partitions, replicas[r], r));
    return matched;
}

}  // namespace

std::vector<MatchedSchedule> match(const std::vector<GivenSchedule>& given, const Setup& setup,
                                   const std::optional<Partition>& partition, const Microbatches& batch,
                                   const std::vector<Microbatches>& replicas) {
    const Recipe& own = setup.recipe;
    if (setup.is_usual()) return match_all(given, setup, partition, batch, replicas);
    if (own != judging(own)) {
        try {
            return match_all(given, with_recipe(setup, own), partition, batch, replicas);
        } catch (const Error&) {
            // Planned otherwise, and now emulated with more than that.
        }
    }
    return match_all(given, with_recipe(setup, judging(own)), partition, batch, replicas);
}

}  // namespace pipeweaver::planner
