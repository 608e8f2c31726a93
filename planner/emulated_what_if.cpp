// What else would change an emulated step: times that vary, gradients in fewer bytes.
#include "pipeweaver/planner/emulate.hpp"

#include <algorithm>
#include <numeric>

namespace pipeweaver::planner {

namespace {

std::vector<std::size_t> slowest_replicas(const Emulation& emulation) {
    std::vector<std::size_t> all(emulation.replicas.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::stable_sort(all.begin(), all.end(), [&](std::size_t a, std::size_t b) {
        return emulation.replicas[a].makespan > emulation.replicas[b].makespan;
    });
    if (all.size() > most_jittered_replicas) all.resize(most_jittered_replicas);
    return all;
}

}  // namespace

std::optional<JitterReport> jitter_of(const EmulationRequest& request, const Emulation& emulation,
                                      const Executor& execute) {
    if (!request.jitter) return std::nullopt;
    const auto steps = emulated_steps(request, emulation, slowest_replicas(emulation), execute);
    std::vector<ReplicaLists> lists;
    for (const EmulatedStep& one : steps) lists.push_back({&one.step.problem, &one.schedule});
    return jitter(lists, *request.jitter, execute);
}

std::optional<GradientReport> gradients_of(const EmulationRequest& request, const Emulation& emulation,
                                           const Executor& execute) {
    if (!request.gradients) return std::nullopt;
    const auto steps = emulated_steps(request, emulation, {emulation.slowest}, execute);
    const EmulatedStep& one = steps.front();
    GradientReport report;
    report.replica = emulation.slowest;
    report.formats = emulator::formats_for(*request.job.setup);
    report.ranks = emulator::gradient_traffic(one.input, one.step, one.schedule, report.formats);
    const auto count = static_cast<std::uint8_t>(report.formats.size());
    for (std::uint8_t way = 1; way < count; ++way) report.alone.push_back(choose_gradients_alone(report.ranks, way));
    report.chosen = choose_gradients(report.ranks, count);
    return report;
}

}  // namespace pipeweaver::planner
