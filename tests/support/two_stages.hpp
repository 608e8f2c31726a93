// A step whose last stage can be split, small enough to work out by hand.
#pragma once

#include "pipeweaver/emulator/step.hpp"

#include <fmt/format.h>

namespace pipeweaver::testing {

/// Two stages on two ranks, two microbatches; a forward takes 1, rank 0's second one `slow`, a backward 2 (or I 1 and W
/// 1). Ids: 4 * microbatch + (0: F0, 1: F1, 2: B1, 3: B0); W1 of the microbatches are 8 and 9.
inline emulator::StepProblem two_stages(std::int64_t slow = 1) {
    using namespace schedule;
    using namespace emulator;
    const auto id = [](std::uint32_t number) { return TaskId{number}; };
    StepProblem step;
    step.problem.name = "two";
    step.problem.ranks.resize(2);
    step.memory.resize(2);
    for (std::uint32_t m = 0; m < 2; ++m) {
        const auto add = [&](std::uint32_t rank, TaskKind kind, std::int64_t time) {
            Task task;
            task.rank = RankId{rank};
            task.kind = kind;
            task.duration = Duration{time};
            task.label = fmt::format("m{}.s{}.{}", m, rank, letter(kind));
            step.problem.tasks.push_back(task);
        };
        add(0, TaskKind::forward, m == 1 ? slow : 1);
        add(1, TaskKind::forward, 1);
        add(1, TaskKind::backward, 2);
        add(0, TaskKind::backward, 2);
        const std::uint32_t f = 4 * m;
        for (std::uint32_t k = 0; k < 3; ++k) step.problem.edges.push_back({id(f + k), id(f + k + 1), {}});
        Mode whole, split;
        whole.forward = split.forward = Duration{1};
        whole.backward = Duration{2};
        split.backward = split.weight = Duration{1};
        step.problem.pairs.push_back({id(f + 1), id(f + 2), {}, {whole}});
        whole.forward = step.problem.tasks[f].duration;
        step.problem.pairs.push_back({id(f), id(f + 3), {}, {whole}});
        step.split.push_back({{split}, {}, {}});
        step.split.push_back({});  // nobody waits for the first stage's input gradient
    }
    step.cost.resize(8);
    step.recompute.resize(8);
    step.mix.resize(8);
    step.unit.resize(8);
    step.chain.resize(8);
    step.memory.resize(2);
    return step;
}

}  // namespace pipeweaver::testing
