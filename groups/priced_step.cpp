#include "pipeweaver/groups/priced_step.hpp"

#include "groups/prices.hpp"
#include "groups/sorted_microbatches.hpp"
#include "pipeweaver/groups/allocation.hpp"
#include "pipeweaver/groups/step_problem.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pipeweaver::groups {

using namespace emulator;

namespace {

// Of each rank: forwards in front of its first backward.
std::vector<std::int64_t> forwards_ahead(const Placing& placing) {
    const std::vector<std::size_t> only(placing.groups.size());
    std::vector<std::int64_t> ahead;
    for (const auto& of_group : replay(placing.split, only).ahead)
        ahead.insert(ahead.end(), of_group.begin(), of_group.end());
    return ahead;
}

// A round's backward, then the forward that is so many rounds ahead of the next.
schedule::Schedule one_f_one_b(const Placing& placing, const schedule::Problem& problem) {
    const auto ahead = forwards_ahead(placing);
    const auto place = [&](TaskId id) {
        const schedule::Task& task = problem.tasks[index(id)];
        if (task.kind == schedule::TaskKind::backward) return 2 * *task.microbatch;
        return 2 * (*task.microbatch - ahead[index(task.rank)]) + 1;
    };
    schedule::Schedule schedule;
    schedule.order.resize(problem.ranks.size());
    schedule.mode.resize(problem.pairs.size());
    for (std::size_t t = 0; t < problem.tasks.size(); ++t)
        schedule.order[index(problem.tasks[t].rank)].push_back(TaskId{static_cast<std::uint32_t>(t)});
    for (auto& order : schedule.order)
        std::sort(order.begin(), order.end(), [&](TaskId a, TaskId b) { return place(a) < place(b); });
    return schedule;
}

// Of the group's stages, one after the other.
std::vector<StageCost> costs_of(const Placed& placed, Prices& prices) {
    const auto& modes = Prices::modes();
    const auto mode = std::find(modes.begin(), modes.end(), placed.recompute) - modes.begin();
    return prices.costs(placed.chain, {placed.tp, placed.pp, placed.dp, placed.cp, placed.zero},
                        {placed.copies, placed.joined}, static_cast<std::uint32_t>(mode));
}

}  // namespace

PricedStep priced_step(const Request& request, const Placing& placing) {
    const Setup setup = on_their_own(*request.setup);
    const SortedMicrobatches microbatches = sorted_microbatches(request.microbatches, request.priced);
    Prices prices(setup, microbatches.priced);
    PricedStep priced;
    StepProblem& step = priced.step;
    step.problem = problem_of(placing, prices.capacity());
    for (std::size_t m = 0; m < setup.model.modules.size(); ++m) step.mixes.push_back({{m, 1.0}});
    std::vector<std::uint32_t> forward, backward, mix;  // per rank
    for (const Placed& placed : placing.groups)
        for (StageCost& stage : costs_of(placed, prices)) {
            forward.push_back(step.keep(stage.forward));
            backward.push_back(step.keep(stage.backward));
            mix.push_back(static_cast<std::uint32_t>(step.mixes.size()));
            if (stage.mix.empty()) stage.mix = {{placed.modules.front(), 1.0}};  // it passes nothing there
            step.mixes.push_back(std::move(stage.mix));
        }
    for (const schedule::Task& task : step.problem.tasks) {
        const std::size_t rank = index(task.rank);
        step.cost.push_back(task.kind == schedule::TaskKind::forward ? forward[rank] : backward[rank]);
        step.mix.push_back(mix[rank]);
    }
    step.recompute.resize(step.problem.tasks.size());
    step.unit.resize(step.problem.tasks.size());
    step.chain.resize(step.problem.tasks.size());
    priced.schedule = one_f_one_b(placing, step.problem);
    return priced;
}

}  // namespace pipeweaver::groups
