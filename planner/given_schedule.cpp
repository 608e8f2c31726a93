#include "planner/given_schedule.hpp"

#include "pipeweaver/base/error.hpp"
#include "planner/replicas/exchange.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

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

// What matches; or what is said where nothing does.
template <class Matched>
struct Matching {
    Matched matched{};
    std::optional<Error> why_not{};
};

Matching<MatchedSchedule> refused(const GivenSchedule& given, const std::string& why) {
    return {{},
            Error(ErrorKind::input, fmt::format("{}: is of the problem '{}', {}: model, cluster, layout, recipe, "
                                                "headroom, batch, seed and costs must be those of the plan",
                                                given.from.string(), given.solved.file.problem.name, why))};
}

Matching<MatchedSchedule> does_not_fit(const MemoryShortage& shortage) {
    return {{}, Error(ErrorKind::limit, shortage.text())};
}

Matching<MatchedSchedule> match_one(const GivenSchedule& given, const Setup& setup, const Partition& partition,
                                    std::size_t replica, const Microbatches& microbatches) {
    const Problem& problem = given.solved.file.problem;
    if (problem.name != problem_name(setup, partition, replica))
        return refused(given, "which this request does not have");
    MatchedSchedule matched{partition, {}, given.solved.schedule};
    auto known = build(setup, partition, microbatches, {.name = problem.name});
    if (known.shortage) return does_not_fit(*known.shortage);
    auto can = splittable(known.cut.step);
    if (can.empty()) can.resize(known.cut.step.problem.pairs.size());  // the recipe splits no backwards
    for (const Pair& pair : problem.pairs) matched.split.push_back(pair.weight.has_value());
    if (matched.split.size() != can.size()) return refused(given, "whose tasks are others");
    for (std::size_t k = 0; k < can.size(); ++k)
        if (matched.split[k] && !can[k]) return refused(given, "whose tasks are others");
    const auto [step, shortage] = split_backwards(known.cut.step, matched.split);
    if (shortage) return does_not_fit(*shortage);
    if (fingerprint(step->problem) != fingerprint(without_waits(problem, step->problem)))
        return refused(given, "whose times or memory are others");
    return {std::move(matched), {}};
}

// Of a plan that was made under `recipe`.
Matching<MatchedSchedules> match_all(const std::vector<GivenSchedule>& given, Job job, const Batch& batch,
                                     const Recipe& recipe, const Partition& partition, const Assignment& by_load,
                                     const Executor& execute) {
    const bool as_it_is = job.setup->is_usual() && job.setup->recipe == recipe;
    if (!as_it_is) job.setup = std::make_shared<const Setup>(with_recipe(*job.setup, recipe));
    const Setup& planned = *job.setup;
    MatchedSchedules matched;
    matched.assignment = exchange(job, batch, partition, by_load, execute);
    for (std::size_t r = 0; r < given.size(); ++r) {
        auto one = match_one(given[r], planned, partition, r, matched.assignment.microbatches[r]);
        if (one.why_not) return {{}, std::move(one.why_not)};
        matched.replicas.push_back(std::move(one.matched));
    }
    return {std::move(matched), {}};
}

}  // namespace

MatchedSchedules match(const std::vector<GivenSchedule>& given, const Job& job, const Batch& batch,
                       const Partition& partition, const Assignment& by_load, const Executor& execute) {
    const Recipe& own = job.setup->recipe;
    const auto under = [&](const Recipe& recipe) {
        return match_all(given, job, batch, recipe, partition, by_load, execute);
    };
    auto all = under(own);
    // Planned otherwise, and now emulated with more than that.
    if (all.why_not && own != judging(own)) all = under(judging(own));
    if (all.why_not) throw Error(*all.why_not);
    return std::move(all.matched);
}

}  // namespace pipeweaver::planner
