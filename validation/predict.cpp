#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/validation/published_run.hpp"
#include "validation/emulated_run.hpp"
#include "validation/step_flops.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace pipeweaver::validation {

namespace {

// Why nothing is said of a run's memory, if so.
std::string_view unknown_memory(const TrainingRun& run) {
    if (run.multimodal) return {};
    if (run.dtype != costdb::Dtype::bf16) return "no memory: what products in 8 bits keep was held to no measured peak";
    if (!run.how.recipe.execution.fused_attention) return "no memory: scores of unfused attention are not counted";
    if (run.how.shares_in_nodes) return "no memory: what the GPUs of a node share out is not counted";
    return {};
}

// Of the fullest GPU.
void predict_memory(const planner::Emulation& emulation, std::int64_t gpus, Prediction& prediction) {
    Bytes peak, compared;
    for (const emulator::RankMemory& rank : emulation.replicas[emulation.slowest].memory) {
        peak = std::max(peak, rank.peak);
        compared = std::max(compared, emulator::peak_of(rank, prediction.memory_kind, gpus));
    }
    prediction.memory_gib = gib(peak);
    prediction.compared_gib = gib(compared);
}

// Constant lengths: nothing is drawn. What a row says refuses the row alone: sizes, too, for which the cost database
// has no answer.
planner::MadeEmulation emulate_row(const planner::EmulateOptions& options) {
    constexpr std::uint64_t seed = 1;
    try {
        auto [request, why_not] = options.try_request(seed, in_order);
        if (!request) return {{}, std::move(why_not)};
        return planner::try_emulate(*request, in_order);
    } catch (const Error& error) {
        return {{}, error};
    }
}

}  // namespace

Prediction predict(const PublishedRun& row, const CostsOf& costs, std::span<const emulator::Recipe> own) {
    Prediction prediction;
    if (!row.unreadable.empty()) {
        prediction.reason = row.unreadable;
        return prediction;
    }
    auto resolved = resolve(row, own);
    prediction.device = resolved.device;
    prediction.experts = resolved.experts;
    prediction.multimodal = resolved.multimodal;
    prediction.memory_kind = stack_of(row).memory;
    if (!resolved.run) {
        prediction.reason = std::move(resolved.refusal);
        return prediction;
    }
    auto& run = *resolved.run;
    prediction.recipe = run.how.recipe.name;
    prediction.products = name_of(run.how.recipe.execution.products);
    auto options = emulated_run(run);
    prediction.command = command_of(options);
    options.workload.known_costs = costs(run.device);
    const auto made = emulate_row(options);
    if (!made.emulation) {
        prediction.reason = made.why_not->what();
        return prediction;
    }
    const planner::Emulation& emulation = *made.emulation;
    prediction.model_flops = emulation.model_flops;
    prediction.flops = step_flops(run, emulation.model_flops);
    prediction.gpus = run.layout.gpus();
    prediction.peak_flops = workloads::device(run.device).bf16_flops * static_cast<double>(prediction.gpus);
    prediction.tokens = emulation.tokens;
    prediction.step_time_s = 1e-9 * static_cast<double>(emulation.step.count());
    const auto unknown = unknown_memory(run);
    if (unknown.empty())
        predict_memory(emulation, run.layout.gpus(), prediction);
    else
        run.assumed.emplace_back(unknown);
    prediction.reason = fmt::format("{}", fmt::join(run.assumed, "; "));
    return prediction;
}

std::vector<Prediction> predict_all(std::span<const PublishedRun> runs, std::span<const emulator::Recipe> own) {
    std::map<std::string, std::shared_ptr<const costdb::CostDatabase>> known;
    const auto costs = [&](const std::string& device) {
        auto& database = known[device];
        if (!database) database = std::make_shared<const costdb::CostDatabase>(costdb::CostDatabase::embedded(device));
        return database;
    };
    std::vector<Prediction> predictions;
    predictions.reserve(runs.size());
    for (const PublishedRun& run : runs) predictions.push_back(predict(run, costs, own));
    return predictions;
}

}  // namespace pipeweaver::validation
