// First-principle times, in microseconds, that measured ones are divided by before they are interpolated.
#pragma once

#include "costdb/tables/device_facts.hpp"
#include "pipeweaver/costdb/operators.hpp"

#include <optional>

namespace pipeweaver::costdb {

struct GemmShape {
    double m = 0, n = 0, k = 0;
    double batch = 1;
};

/// 2 us + max(operations / peak, traffic / bandwidth); inputs of `dtype`, output of 2 bytes (4 for fp32).
double gemm_roofline_us(const DeviceFacts& device, Dtype dtype, const GemmShape& shape);

/// The same with waves of output tiles and split k over the multiprocessors: the best of six tile shapes. Made to
/// be smooth where the measured time is, not to be near it: constants in base_cost.cpp.
double gemm_tiles_us(const DeviceFacts& device, Dtype dtype, const GemmShape& shape);

/// The base that interpolates best on the device: tiles on Ampere, the roofline on later, persistent kernels.
double gemm_base_us(const DeviceFacts& device, Dtype dtype, const GemmShape& shape);

/// How gemm_tiles_us() cuts a product.
struct GemmTiling {
    double rows = 0, columns = 0;  ///< of an output tile
    double parts = 1;              ///< of k
    double tiles = 0;              ///< with those of all parts
    double waves = 0;              ///< over the multiprocessors
    double wave_loss = 1;          ///< time over that without waiting for the last wave
    double padding = 1;            ///< area of the tiles over that of the output
    double sum_up_us = 0;          ///< in which the parts are added
};

/// What gemm_base_us() is made of: launch_us + max(compute_us, traffic_us), to rounding.
struct GemmBase {
    double launch_us = 0, compute_us = 0, traffic_us = 0;
    double full_us = 0;                ///< the operations in whole waves of the fastest tile, all of them output
    double peak_us = 0;                ///< the operations at the device's peak
    double traffic_bytes = 0;          ///< each matrix once
    std::optional<GemmTiling> tiling;  ///< none: the base knows no tiles
};
[[nodiscard]] GemmBase gemm_base(const DeviceFacts& device, Dtype dtype, const GemmShape& shape);

struct AttentionShape {
    double batch = 0, seq_len = 0, q_heads = 0, kv_heads = 0, head_dim = 0;
    bool causal = true;
};

/// 5 us + max(4 b a s^2 dh (causal: half) / (0.6 peak), traffic / bandwidth), 16-bit.
double attention_base_us(const DeviceFacts& device, const AttentionShape& shape);

struct MoeShape {
    double tokens = 0, hidden = 0, ffn = 0, top_k = 0, experts = 0, moe_tp = 1, moe_ep = 1;
};

/// 5 us + max(operations / peak, traffic / bandwidth) of three GEMMs over the experts of one GPU: tokens * top_k /
/// moe_ep rows, ffn / moe_tp columns, weights of the experts that are hit at all.
double moe_base_us(const DeviceFacts& device, Dtype dtype, const MoeShape& shape);

/// A kernel of a gated delta net. Convolution: its traffic. Rule: a block for each value head and sequence walks
/// through the chunks of 64 positions, as many at once as there are multiprocessors, 3 us a chunk.
double linear_base_us(const DeviceFacts& device, const DeltaNet& query);

}  // namespace pipeweaver::costdb
