#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/validation/published_run.hpp"
#include "validation/emulated_run.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace pipeweaver::validation {

namespace {

Bytes peak_of(const planner::Emulation& emulation) {
    Bytes peak;
    for (const auto& rank : emulation.replicas[emulation.slowest].memory) peak = std::max(peak, rank.peak);
    return peak;
}

}  // namespace

Prediction predict(const PublishedRun& row, const CostsOf& costs, std::span<const emulator::Recipe> own) {
    Prediction prediction;
    auto resolved = resolve(row, own);
    prediction.device = resolved.device;
    prediction.experts = resolved.experts;
    prediction.multimodal = resolved.multimodal;
    if (!resolved.run) {
        prediction.reason = std::move(resolved.refusal);
        return prediction;
    }
    auto& run = *resolved.run;
    prediction.recipe = run.multimodal ? run.multimodal->recipe.name : run.how.recipe.name;
    auto options = emulated_run(run);
    prediction.command = command_of(options);
    options.workload.known_costs = costs(run.device);
    try {
        constexpr std::uint64_t seed = 1;  // constant lengths: nothing is drawn
        const auto emulation = planner::emulate(options.request(seed, in_order), in_order);
        prediction.model_flops = emulation.model_flops;
        prediction.step_time_s = 1e-9 * static_cast<double>(emulation.step.count());
        if (run.device == "b200" || run.multimodal)
            prediction.memory_gib = static_cast<double>(peak_of(emulation).count) / static_cast<double>((1_GiB).count);
        else
            run.assumed.emplace_back("no memory: known for 16-bit runs of b200 alone");
    } catch (const Error& error) {  // an operator larger than the cost database answers for
        prediction.reason = error.what();
        return prediction;
    }
    prediction.reason = fmt::format("{}", fmt::join(run.assumed, "; "));
    return prediction;
}

}  // namespace pipeweaver::validation
