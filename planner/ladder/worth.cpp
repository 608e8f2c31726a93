#include "planner/ladder/worth.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/planner/launched_way.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "planner/evaluate/step.hpp"
#include "planner/way/run.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace pipeweaver::planner {

using namespace emulator;

namespace {

// Whether two rungs run one way, on other microbatches.
bool run_one_way(const Rung& a, const Rung& b) {
    if (!a.launched || !b.launched) return false;
    const LaunchedWay &one = *a.launched, &other = *b.launched;
    return one.setup == other.setup && one.name == other.name && one.layers == other.layers &&
           one.policy == other.policy && one.recompute == other.recompute &&
           one.partition.chunks_per_rank == other.partition.chunks_per_rank;
}

}  // namespace

Side RungSchedules::side() const {
    Side all;
    for (std::size_t i = 0; i < steps.size(); ++i) all.push_back({&steps[i], &schedules[i]});
    return all;
}

RungSchedules RungSchedules::with_optimizer() && {
    for (StepProblem& step : steps)
        for (schedule::Rank& rank : step.problem.ranks) rank.tail += step.optimizer;
    return std::move(*this);
}

RungSchedules schedules_of(const LaunchedWay& way, const Target& target) {
    const WayOfTarget said = WayOfTarget::as_said(way, target);
    std::vector<Step> steps;
    std::size_t tasks = 1;
    const auto replicas = of_shares(way.batch->microbatches, way.assigned);
    for (const Microbatches& own : some_as_run(way, target, replicas, way.slowest)) {
        auto units = partition::units(way.partition, way.setup->model, own);
        tasks = std::max(tasks, count_tasks(way.partition, units));
        if (steps.size() >= effort_of(tasks, way.slowest.size()).perturbed) break;
        steps.push_back(said.build(way, std::move(units)));
    }
    std::vector<const Step*> places;
    for (const Step& one : steps) places.push_back(&one);
    const WayResult ran = run_steps(places, way.policy, said.settings, way.recompute);
    PIPEWEAVER_ASSERT(ran.runs());
    RungSchedules all;
    for (std::size_t i = 0; i < ran.replicas.size(); ++i) {
        settle(steps[i].input, steps[i].cut.step, ran.replicas[i].schedule);  // for its tails
        all.steps.push_back(std::move(steps[i].cut.step));
        all.schedules.push_back(ran.replicas[i].schedule);
    }
    return all;
}

RungSchedules schedules_of(const Plan& plan) {
    std::size_t tasks = 1, examined = 0;
    for (const ReplicaPlan& one : plan.replicas) {
        if (!one.examined) continue;
        ++examined;
        tasks = std::max(tasks, one.cut.step.problem.tasks.size());
    }
    RungSchedules all;
    for (const ReplicaPlan& one : plan.replicas) {
        if (!one.examined || all.steps.size() >= effort_of(tasks, examined).perturbed) continue;
        all.steps.push_back(one.cut.step);
        all.schedules.push_back(*one.found.schedule);
    }
    return all;
}

RungSchedules schedules_of(const TargetPlan& plan) { return {{plan.cut.step}, {*plan.found.schedule}}; }

Worth worth_over(const Rung& easier, const RungSchedules& of_easier, const Rung& rung, const RungSchedules& of_rung,
                 std::uint64_t seed, const Executor& execute) {
    Worth worth{.over = easier.name, .gain = ratio(easier.step, rung.step)};
    const Side side = of_rung.side();
    const std::vector<Side> against{of_easier.side()};
    const Draws draws{.seed = seed, .paired = run_one_way(easier, rung)};
    const Robustness drawn = robustness(side, against, draws, execute);
    worth.draws = drawn.replays;
    worth.wins = drawn.against.front().wins;
    worth.is_enough = worth.wins >= margins.worth_draws * worth.draws;
    return worth;
}

std::size_t advise(std::vector<Rung>& rungs, const std::string& option,
                   const std::function<RungSchedules(const Rung&)>& schedules, std::uint64_t seed,
                   const Executor& execute) {
    std::size_t advised = 0;
    std::optional<RungSchedules> of_advised;
    for (std::size_t i = 1; i < rungs.size(); ++i) {
        Rung& rung = rungs[i];
        if (rung.target != option || !rung.why_nothing.empty()) continue;
        const Rung& easier = rungs[advised];
        rung.worth = Worth{.over = easier.name, .gain = ratio(easier.step, rung.step)};
        if (rung.worth->gain < margins.worth) continue;
        if (!of_advised) of_advised = schedules(easier);
        RungSchedules own = schedules(rung);
        rung.worth = worth_over(easier, *of_advised, rung, own, seed, execute);
        if (!rung.worth->is_enough) continue;
        advised = i;
        of_advised = std::move(own);
    }
    return advised;
}

}  // namespace pipeweaver::planner
