// How wrong each kind of answer is, and the factors of the models: the one place for numbers that came from the tables.
#pragma once

#include "costdb/tables/device_facts.hpp"
#include "pipeweaver/costdb/kinds.hpp"

#include <cstdint>

namespace pipeweaver::costdb {

/// What was asked, as far as errors differ by it.
enum class Subject : std::uint8_t {
    gemm_bf16,
    gemm_fp8,
    attention_causal,
    attention_encoder,
    collective,
    collective_nodes,  ///< from the measured sweeps across nodes
    point_to_point,
    moe,
    elementwise,
    linear  ///< a kernel of linear attention
};

/// How the answer was found.
enum class Region : std::uint8_t {
    exact,     ///< the table's point
    on_grid,   ///< a hole of the table
    off_grid,  ///< between the lines of the table
    beyond,    ///< beyond the table, or of another number of key heads
    like,      ///< of a like operator: another head size, another layer's shape, another device or number of GPUs
    unlike,    ///< of another operator: causal for encoder attention
    modelled
};

/// Nine of ten answers of this kind lie within this many percent of the truth. `big`: a GEMM with m >= 512 and
/// mnk >= 2^33, an attention that is answered with more than 200 us; for others it makes no difference. `doubt`: how
/// far off the values around are (Estimate::doubt), where a grid says so.
double error_percent(Subject subject, Family family, Region region, bool big, double doubt = 0);

/// Of a measured point: its spread, and no less than 4 %, what sources differ by.
double exact_error_percent(std::int64_t spread_permille);

/// Error of two independent steps.
double combined(double first_percent, double second_percent);

/// Backward time / forward time of a GEMM: measured 0.99-1.02 for the input gradient, 1.05 for the weight gradient
/// that is accumulated in fp32 (61 shapes on A100-PCIe, 144 on B200).
double gemm_ratio(Family family, Pass pass);
/// The spread of that ratio over the shapes, in percent.
double gemm_ratio_error_percent(Pass pass);

/// Backward time / forward time of flash attention: 2.86 A100 and 2.99 B200 (measured, medians), 2.7 Hopper. Less where
/// the blocks of 128 rows of all heads are few for the multiprocessors, which slows the forward pass more: `waves`,
/// blocks per multiprocessor. Not so on Hopper, where nothing public tells how much less.
double attention_ratio(Family family, double waves);
/// Its spread in percent; `big`: the forward pass takes more than 200 us.
double attention_ratio_error_percent(Family family, bool big);

/// Measured time / roofline of big shapes on devices that were measured.
double gemm_model_factor(Dtype dtype);
double attention_model_factor(bool causal);
double moe_model_factor();

}  // namespace pipeweaver::costdb
