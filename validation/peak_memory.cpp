// Peak of a rank = weights, gradients and optimizer + microbatches in flight * activations + what the fullest moment of
// the backward takes in passing. bf16 weights, fp32 gradients, 12 bytes of optimizer state a parameter divided over the
// replicas; per-layer activations as workloads/activations derives them. Transformer Engine (2.8 and later) keeps one
// bf16 gradient of every shape of weight: once a GPU, not once a layer.
#include "pipeweaver/workloads/activations.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "validation/published_steps.hpp"
#include "validation/rank_parameters.hpp"

#include <algorithm>

namespace pipeweaver::validation {

using namespace emulator;

namespace {

class RankMemory {
public:
    RankMemory(const TrainingRun& run, const RankLayers& rank, std::int64_t index)
        : run_(run), network_(run.network), rank_(rank), index_(index), m_(run.positions()), tp_(run.layout.tp) {}

    Bytes peak() const { return states() + in_flight() + transient(); }

private:
    Bytes states() const {
        const auto bytes = [](std::int64_t parameters, std::int64_t replicas) {
            return 6 * parameters + (12 * parameters + replicas - 1) / replicas;
        };
        return Bytes{bytes(rank_.common, run_.layout.dp * run_.cp) + bytes(rank_.experts, expert_replicas(run_))};
    }

    Bytes layer_activations(std::int64_t layer) const {
        // The attention's output is kept before and after its all-to-all.
        const Bytes exchanged{run_.cp > 1 ? 2 * m_ * network_.heads * network_.head_dim / tp_ : 0};
        return workloads::layer_activations(network_, layer, m_, 0, tp_) + exchanged;
    }

    // 1F1B, interleaved: chunks of L/(p v) layers (arXiv 2104.04473).
    Bytes in_flight() const {
        Bytes layers = workloads::layer_input(network_, m_, tp_);
        for (std::int64_t i = rank_.first; i < rank_.first + rank_.count; ++i) layers += layer_activations(i);
        const std::int64_t pp = run_.layout.pp, v = run_.virtual_stages, micro = run_.microbatches();
        if (v == 1) return std::min(micro, pp - index_) * layers;
        const std::int64_t chunks = std::min(micro * v, 2 * (pp - 1 - index_) + (v - 1) * pp + 1);
        return Bytes{chunks * layers.count / v};
    }

    bool has(bool with_experts) const {
        for (std::int64_t i = rank_.first; i < rank_.first + rank_.count; ++i)
            if (workloads::is_moe_layer(network_, i) == with_experts) return true;
        return false;
    }

    // Parameters of the rank's kinds of layers, each weight shape once; of experts one.
    std::int64_t kept_weight_gradients() const {
        if (!network_.moe) return workloads::layer_parameters(network_, 0) / tp_;
        const auto shapes = workloads::weight_shapes(network_, has(false), has(true));
        return shapes.common(tp_) + shapes.experts;
    }

    Bytes transient() const {
        const Bytes kept{2 * kept_weight_gradients()};
        Bytes layer;
        for (std::int64_t i = rank_.first; i < rank_.first + rank_.count; ++i)
            layer = std::max(layer, workloads::layer_backward_workspace(network_, i, m_, tp_));
        if (!rank_.head) return layer + kept;
        const Bytes head = workloads::head_activations(network_, m_, tp_) +
                           Bytes{2 * network_.hidden * network_.vocab / tp_} +
                           workloads::head_backward_workspace(network_, m_);
        return std::max(layer, head) + kept;
    }

    const TrainingRun& run_;
    const workloads::Architecture& network_;
    const RankLayers& rank_;
    std::int64_t index_, m_, tp_;
};

}  // namespace

std::optional<Bytes> peak_memory(const TrainingRun& run, std::string& why) {
    if (run.device != "b200") {
        why = "no memory: known for 16-bit runs of b200 alone";
        return std::nullopt;
    }
    Bytes peak;
    std::int64_t index = 0;
    for (const RankLayers& rank : rank_layers(run)) peak = std::max(peak, RankMemory(run, rank, index++).peak());
    return peak;
}

}  // namespace pipeweaver::validation
