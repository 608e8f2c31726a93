#include "validation/step_flops.hpp"

#include "pipeweaver/workloads/counts.hpp"

#include <array>

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

}  // namespace

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

}  // namespace pipeweaver::validation
