// What else would change an emulated step: times that vary, gradients in fewer bytes, fewer shapes.
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

std::optional<ShapesPrice> price_of_shapes(const EmulationRequest& request, const Emulation& emulation,
                                           const Executor& execute) {
    if (!request.compiling || !emulation.shapes) return std::nullopt;
    const Compiling& compiling = *request.compiling;
    ShapesPrice price;
    const auto add = [&](std::size_t shapes, Duration step) {
        if (!price.tried.empty() && price.tried.back().shapes == shapes) return;
        const double compiled = static_cast<double>(shapes) * static_cast<double>(compiling.each.count());
        const double trained = static_cast<double>(compiling.steps) * static_cast<double>(step.count());
        price.tried.push_back({shapes, step, (compiled + trained) * 1e-9});
    };
    const auto emulated = [&](std::optional<std::size_t> shapes) {
        EmulationRequest changed = request;
        changed.shapes = shapes;
        changed.loader.reset();
        return try_emulate(changed, execute).emulation;
    };
    for (std::size_t most = 1; most < std::min(*request.shapes, emulation.shapes->before); ++most)
        if (const auto fewer = emulated(most)) add(fewer->shapes->after, fewer->step);
    add(emulation.shapes->after, emulation.step);
    if (emulation.shapes->after < emulation.shapes->before)
        if (const auto own = emulated(std::nullopt)) add(emulation.shapes->before, own->step);
    const auto cheapest = std::min_element(price.tried.begin(), price.tried.end(),
                                           [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    price.cheapest = static_cast<std::size_t>(cheapest - price.tried.begin());
    return price;
}

}  // namespace pipeweaver::planner
