#include "pipeweaver/base/error.hpp"
#include "pipeweaver/emulator/in_situ.hpp"
#include "validation/published_steps.hpp"

#include <fmt/ranges.h>

namespace pipeweaver::validation {

using namespace emulator;

Prediction predict(const PublishedRun& row, const CostsOf& costs) {
    Prediction prediction;
    auto resolved = resolve(row);
    prediction.device = resolved.device;
    prediction.experts = resolved.experts;
    if (!resolved.run) {
        prediction.reason = std::move(resolved.refusal);
        return prediction;
    }
    auto& run = *resolved.run;
    const StepCosts step{run, costs(run.device), *fitted_constants(run.device)};
    try {
        prediction.step_time_s = 1e-9 * (run.device == "a100_sxm" ? unfused_step_ns(step) : fused_step_ns(step));
    } catch (const Error& error) {  // an operator larger than the cost database answers for
        prediction.reason = error.what();
        return prediction;
    }
    std::string no_memory;
    if (const auto bytes = peak_memory(run, no_memory))
        prediction.memory_gib = static_cast<double>(bytes->count) / static_cast<double>((1_GiB).count);
    else
        run.assumed.push_back(no_memory);
    prediction.reason = fmt::format("{}", fmt::join(run.assumed, "; "));
    return prediction;
}

}  // namespace pipeweaver::validation
