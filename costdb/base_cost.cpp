#include "costdb/base_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::costdb {

namespace {

double gemm_traffic(Dtype dtype, const GemmShape& s) {
    const auto input = static_cast<double>(size_of(dtype));
    const double output = dtype == Dtype::fp32 ? 4 : 2;
    return s.batch * (input * (s.m * s.k + s.n * s.k) + output * s.m * s.n);
}

struct Tile {
    double rows, columns, efficiency;
};
constexpr std::array<Tile, 11> tiles{{{256, 128, 1},
                                      {128, 256, 1},
                                      {128, 128, .95},
                                      {256, 64, .9},
                                      {64, 256, .9},
                                      {128, 64, .85},
                                      {64, 128, .85},
                                      {64, 64, .7},
                                      {32, 128, .5},
                                      {16, 128, .3},
                                      {16, 64, .2}}};

}  // namespace

double gemm_roofline_us(const DeviceFacts& device, Dtype dtype, const GemmShape& s) {
    return 2 +
           std::max(s.batch * 2 * s.m * s.n * s.k / device.peak(dtype), gemm_traffic(dtype, s) / device.bytes_per_us);
}

double gemm_tiles_us(const DeviceFacts& device, Dtype dtype, const GemmShape& s) {
    const auto units = static_cast<double>(device.multiprocessors);
    const double peak = device.peak(dtype);
    double best = HUGE_VAL;
    for (const auto& tile : tiles) {
        const double count = s.batch * std::ceil(s.m / tile.rows) * std::ceil(s.n / tile.columns);
        for (const double parts : {1., 2., 4., 8.}) {
            const double waves = std::ceil(count * parts / units);
            double time = waves * units * 2 * tile.rows * tile.columns * (s.k / parts) / (peak * tile.efficiency);
            if (parts > 1) time += 1 + parts * 8 * s.batch * s.m * s.n / device.bytes_per_us;
            best = std::min(best, time);
        }
    }
    return 2 + std::max(best, gemm_traffic(dtype, s) / device.bytes_per_us);
}

double gemm_base_us(const DeviceFacts& device, Dtype dtype, const GemmShape& s) {
    return device.family == Family::ampere ? gemm_tiles_us(device, dtype, s) : gemm_roofline_us(device, dtype, s);
}

double attention_base_us(const DeviceFacts& device, const AttentionShape& s) {
    const double operations = 4 * s.batch * s.q_heads * s.seq_len * s.seq_len * s.head_dim * (s.causal ? 0.5 : 1);
    const double traffic = 2 * s.batch * s.seq_len * s.head_dim * (2 * s.q_heads + 2 * s.kv_heads);
    return 5 + std::max(operations / (0.6 * device.bf16_flops_per_us), traffic / device.bytes_per_us);
}

double moe_base_us(const DeviceFacts& device, Dtype dtype, const MoeShape& s) {
    const double rows = s.tokens * s.top_k / s.moe_ep;
    const double width = s.ffn / s.moe_tp;
    const double weights = 3 * s.hidden * width * std::min(s.experts / s.moe_ep, std::max(rows, 1.));
    const auto bytes = static_cast<double>(size_of(dtype));
    const double traffic = bytes * (weights + rows * (2 * s.hidden + 3 * width));
    return 5 + std::max(2 * rows * 3 * s.hidden * width / device.peak(dtype), traffic / device.bytes_per_us);
}

}  // namespace pipeweaver::costdb
