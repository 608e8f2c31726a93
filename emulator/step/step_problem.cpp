#include "pipeweaver/emulator/step_problem.hpp"

#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"

#include <utility>

namespace pipeweaver::emulator {

BuiltStep checked(StepProblem step) {
    PIPEWEAVER_ASSERT(step.memory.size() == step.problem.ranks.size());
    const auto found = check(step.problem);
    if (!found) return {std::move(step), {}};
    const std::size_t rank = index(found->rank);
    return {{},
            MemoryShortage{found->rank,
                           step.memory[rank],
                           found->needed,
                           *step.problem.ranks[rank].capacity,
                           {},
                           found->text(step.problem)}};
}

double model_flops_utilization(double model_flops, const workloads::Cluster& cluster, const Layout& layout,
                               Duration step) {
    const double peak = workloads::device(cluster.device).bf16_flops * static_cast<double>(layout.gpus());
    return model_flops / (peak * static_cast<double>(step.count()) * 1e-9);
}

StepProblem require_step(BuiltStep built) {
    if (built.shortage) fail(ErrorKind::limit, "{}", built.shortage->text());
    return std::move(*built.step);
}

}  // namespace pipeweaver::emulator
