// FLOPs of operators: what their sizes say, beside what pipeweaver/workloads/counts.hpp says of the layer.
#pragma once

#include "pipeweaver/emulator/operators.hpp"

#include <cstddef>
#include <variant>
#include <vector>

namespace pipeweaver::testing {

inline double flops_of(const costdb::Gemm& gemm) {
    return 2.0 * static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) *
           static_cast<double>(gemm.k);
}

/// Scores and their use: 2 (d + v) for each head and pair of positions, v the size of a value.
inline double flops_of(const emulator::PackedAttention& attention) {
    double pairs = 0;
    for (std::size_t i = 0; i < attention.lengths.size(); ++i) {
        const auto keys = attention.keys.empty() ? attention.lengths[i] : attention.keys[i];
        pairs += static_cast<double>(attention.lengths[i]) * static_cast<double>(keys);
    }
    if (attention.shape.causal) pairs /= 2;
    const auto values = attention.value_dim > 0 ? attention.value_dim : attention.shape.head_dim;
    return 2 * static_cast<double>(attention.shape.q_heads * (attention.shape.head_dim + values)) * pairs;
}

/// Of all GEMMs, attentions and experts; the rules of linear attentions are left out.
inline double flops_of(const std::vector<emulator::Operator>& operators) {
    double sum = 0;
    for (const auto& op : operators) {
        if (const auto* gemm = std::get_if<costdb::Gemm>(&op.query)) sum += flops_of(*gemm);
        if (const auto* attention = std::get_if<emulator::PackedAttention>(&op.query)) sum += flops_of(*attention);
        if (const auto* experts = std::get_if<emulator::Experts>(&op.query)) sum += experts->flops();
    }
    return sum;
}

}  // namespace pipeweaver::testing
