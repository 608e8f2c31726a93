// Linear attention as an operator of one GPU: the rule alone, between convolution and gated norm.
#pragma once

#include "pipeweaver/costdb/operators.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace pipeweaver::costdb {
class CostDatabase;
}

namespace pipeweaver::emulator {

/// The chunked rule of a linear attention over packed sequences, whose states do not cross them: its small batched
/// products at a share of the peak, or its traffic, whichever is more. Of a delta net a part of this is the kernel in
/// which states follow each other: it takes no less than a time a chunk of the longest sequence.
///
/// Devices       the training kernels were measured on H200. Tables hold an inference kernel of the same rule: by how
///               much it is faster on the device than on H200 delta nets are, too, and are `extrapolated`; without such
///               a table, and Mamba-2, they go by the peak and are `modelled`.
///
/// Shares        of the peak: delta nets 0.114, and 0.087 backward; the kernel of states 0.2 of the work, backward 0.4,
///               and 1.1 us a chunk, backward 3.7 us. Fitted to flash-linear-attention 0.5 on H200 (QwenLM/FlashQLA@
///               6e5d2ea1 benchmark/benchmark_results_H200.txt: heads of 128, 2k to 32k tokens): sequences of 8k and
///               more within 12 % forward and 20 % backward, but for 4 heads. Mamba-2 0.08, one measurement: 79 ns a
///               position of 128 heads of 64 on H100, forward (vllm-project/vllm#27299).
/// Notation      C positions a chunk, n and v a head's keys and values; a head and chunk, multiply-adds are two.
/// Delta nets    flash-linear-attention, chunk_gated_delta_rule. Forward products: C^2 (6n + 4v) of scores, their
///               inverse's use and outputs, 6 C n v with the state, 2/3 C^3 of the inverse. Backward, which works out
///               again what the state is made of: C^2 (14n + 10v) + 16 C n v + 4 C^3. Bytes a position: forward 14n +
///               12v + 12C + 4 nv/C, backward 36n + 30v + 8C + 8 nv/C: what the kernels hand each other.
/// Mamba-2       mamba_ssm, mamba_chunk_scan_combined. Forward: 4 C n v + C^2 v, and C^2 n a group; backward 10 C n v +
///               2 C^2 v, and 3 C^2 n a group. Bytes a position: forward 6v + 16 nv/C, and 8n a group; backward 18v +
///               40 nv/C, and 16n a group: states are kept in fp32.
struct LinearRule {
    static constexpr std::string_view op = "linear_attention";
    workloads::LinearAttention shape;  ///< with the heads of this GPU
    std::vector<std::int64_t> lengths;
    costdb::Pass pass = costdb::Pass::forward;

    std::int64_t chunks() const;  ///< of all sequences
    double flops() const;
    double bytes() const;
    double products_ns(double bf16_flops) const;  ///< of flops(), at the share of this peak that is reached
    [[nodiscard]] costdb::Cost cost(const costdb::CostDatabase& costs) const;
};

}  // namespace pipeweaver::emulator
