// Collects the operators of one pass.
#pragma once

#include "pipeweaver/emulator/operators.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::emulator {

inline constexpr std::int64_t bf16_width = 2;  // bytes of a bf16 value

inline costdb::Pass gemm_pass(PassKind pass) {
    switch (pass) {
        case PassKind::forward:
            return costdb::Pass::forward;
        case PassKind::backward:
            return costdb::Pass::backward;
        case PassKind::input_gradient:
            return costdb::Pass::backward_input;
        case PassKind::weight_gradient:
            return costdb::Pass::backward_weight;
    }
    return costdb::Pass::forward;
}

inline bool has_input_gradient(PassKind pass) { return pass == PassKind::backward || pass == PassKind::input_gradient; }

/// Positions rounded up to whole tiles, as training frameworks pad them.
inline std::int64_t padded(std::int64_t positions) { return (positions + 127) / 128 * 128; }

/// Collects the operators of one pass; knows which of them the pass has at all.
class OperatorBuilder {
public:
    OperatorBuilder(std::int64_t positions, const Layout& layout, PassKind pass)
        : m_(positions), layout_(layout), pass_(pass) {}

    // The operators that follow work on so many positions.
    void over(std::int64_t positions) { m_ = positions; }

    void gemm(std::string_view name, std::int64_t n, std::int64_t k) {
        add(name, costdb::Gemm{.dtype = costdb::Dtype::bf16, .m = m_, .n = n, .k = k, .pass = gemm_pass(pass_)});
    }

    // Every sequence attends to itself, or, with `keys`, to that many positions of another module.
    void attention(const workloads::Architecture& network, const std::vector<std::int64_t>& lengths,
                   const std::vector<std::int64_t>& keys = {}) {
        if (pass_ == PassKind::weight_gradient) return;
        costdb::Attention shape;
        shape.q_heads = network.heads / layout_.tp;
        shape.kv_heads = std::max<std::int64_t>(1, network.kv_heads / layout_.tp);
        shape.head_dim = network.head_dim;
        shape.causal = network.attention.causal && keys.empty();
        shape.pass = pass_ == PassKind::forward ? costdb::Pass::forward : costdb::Pass::backward;
        add(keys.empty() ? "attention" : "cross attention", PackedAttention{shape, lengths, keys});
    }

    // Memory-bound kernels, given their forward traffic; the backward's is `backward_ratio` times that.
    void elementwise(std::string_view name, costdb::ElementwiseKind kind, std::int64_t bytes, double backward_ratio,
                     const KernelShape& shape) {
        if (pass_ == PassKind::weight_gradient) return;
        const bool forward = pass_ == PassKind::forward;
        const double traffic = (forward ? 1.0 : backward_ratio) * static_cast<double>(bytes);
        operators.push_back({name,
                             costdb::Elementwise{Bytes{static_cast<std::int64_t>(std::llround(traffic))}, kind,
                                                 forward ? costdb::Pass::forward : costdb::Pass::backward},
                             shape});
    }

    // Sequence parallelism around a pair of GEMMs: inputs are gathered, outputs scattered. The backward does the same
    // with gradients, and gathers the inputs once more for the weight gradient.
    void tensor_parallel(std::int64_t hidden) {
        if (pass_ == PassKind::forward || has_input_gradient(pass_)) {
            collective("gather", costdb::CollectiveKind::all_gather, hidden);
            collective("scatter", costdb::CollectiveKind::reduce_scatter, hidden);
        }
        if (pass_ == PassKind::backward || pass_ == PassKind::weight_gradient)
            collective("gather for weights", costdb::CollectiveKind::all_gather, hidden);
    }

    // The context of a cross attention is kept in parts: gathered for its keys, its gradient scattered.
    void gather_context(std::int64_t width_of_context) {
        if (pass_ != PassKind::input_gradient)
            collective("gather context", costdb::CollectiveKind::all_gather, width_of_context);
        if (has_input_gradient(pass_))
            collective("scatter context", costdb::CollectiveKind::reduce_scatter, width_of_context);
    }

    void collective(std::string_view name, costdb::CollectiveKind kind, std::int64_t columns,
                    std::int64_t bytes_each = bf16_width) {
        if (layout_.tp == 1) return;
        add(name, costdb::Collective{.kind = kind,
                                     .dtype = costdb::Dtype::bf16,
                                     .gpus = layout_.tp,
                                     .message = Bytes{m_ * columns * bytes_each}});
        operators.back().stream = Stream::tensor;
    }

    template <class Query>
    void add(std::string_view name, Query query) {
        operators.push_back({name, std::move(query), {}});
    }

    std::vector<Operator> operators;

private:
    std::int64_t m_;
    const Layout& layout_;
    PassKind pass_;
};

}  // namespace pipeweaver::emulator
