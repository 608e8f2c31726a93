#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/validation/flops.hpp"
#include "pipeweaver/validation/published_run.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "validation/emulated_run.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

namespace pipeweaver::validation {

using emulator::Recompute;

namespace {

// Forward FLOPs of one sequence in all blocks.
struct Blocks {
    double products = 0, masked = 0, square = 0;  // without attention; attention under its mask and over the square
};

Blocks blocks_of(const workloads::Architecture& network, std::int64_t seq) {
    Blocks all;
    const std::array<std::int64_t, 1> lengths{seq};
    const auto tokens = static_cast<double>(seq);
    for (std::int64_t layer = 0; layer < network.layers; ++layer) {
        const double products = workloads::layer_flops(network, layer, tokens, 0);
        const double pairs = workloads::attention_pairs(network, layer, lengths);
        all.products += products;
        all.masked += workloads::layer_flops(network, layer, tokens, pairs) - products;
        all.square += workloads::layer_flops(network, layer, tokens, pairs > 0 ? tokens * tokens : 0) - products;
    }
    return all;
}

// Of what a backward computes again, products and attention alone.
double repeated(Recompute recomputation, const Blocks& blocks) {
    if (recomputation == Recompute::full) return blocks.products + blocks.square;
    if (recomputation == Recompute::half) return (blocks.products + blocks.square) / 2;
    return recomputation == Recompute::core_attention ? blocks.square : 0;
}

// `model_flops`: those that the emulation counts. Runs of several networks, of generators, of adapters and of packed
// documents have no other count. Attention over whole squares is seq x seq pairs in every block that attends.
StepFlops step_flops(const TrainingRun& run, double model_flops) {
    StepFlops all;
    const auto set = [&all](FlopsCounted counted, double flops) { all.at(static_cast<std::size_t>(counted)) = flops; };
    set(FlopsCounted::model, model_flops);
    if (run.multimodal || run.adapters || run.document > 0) return all;
    const Blocks blocks = blocks_of(run.network, run.seq);
    constexpr double passes = 3;  // a backward is twice its forward
    const auto sequences = static_cast<double>(run.global_batch);
    const double square = model_flops + passes * sequences * (blocks.square - blocks.masked);
    set(FlopsCounted::full_attention, square);
    set(FlopsCounted::hardware, square + sequences * repeated(run.recomputation, blocks));
    set(FlopsCounted::parameters, model_flops - passes * sequences * blocks.masked);
    return all;
}

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
