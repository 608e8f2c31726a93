// Few shapes: what their padding takes, and what is not compiled for it.
#include "pipeweaver/planner/emulate.hpp"

#include <algorithm>

namespace pipeweaver::planner {

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
