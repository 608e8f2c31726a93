#include "costdb/tables/base_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace pipeweaver::costdb {

namespace {

constexpr double roofline_launch_us = 2;

// Bytes of a value with its part of a scale.
double bytes_of(Dtype dtype) { return dtype == Dtype::nvfp4 ? 9. / 16 : static_cast<double>(size_of(dtype)); }

double gemm_traffic(Dtype dtype, const GemmShape& s) {
    const double input = bytes_of(dtype);
    const double output = dtype == Dtype::fp32 ? 4 : 2;
    return s.batch * (input * (s.m * s.k + s.n * s.k) + output * s.m * s.n);
}

struct Tile {
    constexpr Tile(double rows, double columns, double efficiency)
        : per_row(1 / rows),
          per_column(1 / columns),
          elements(rows * columns / efficiency),
          height(rows),
          width(columns) {}
    double per_row, per_column;
    double elements;  // that take as long at full speed
    double height, width;
};
// Fitted to every other n of A100's table (m >= 512 counted twice): what is interpolated along n misses the other half
// by 2.3 / 9 % in big shapes, where plain tiles and whole waves miss by 2.9 / 13 %.
constexpr double fastest = 1.3;  // efficiency of the fastest
constexpr std::array<Tile, 6> tiles{
    {{128, 256, fastest}, {256, 64, 1}, {64, 128, .8}, {64, 64, .55}, {32, 128, .45}, {16, 128, .3}}};
constexpr double tiles_launch_us = 3;
constexpr double wholeness = 0.85;     // share of the work that waits for its whole wave
constexpr double traffic_share = 1.4;  // of the time at full bandwidth
constexpr double split_us = 5;         // of a second kernel that adds the parts of a split k
constexpr double split_traffic = 4;    // bytes per part and element

/// std::ceil of what is >= 0 and below 2^63, without a call.
double whole(double x) {
    const auto below = static_cast<double>(static_cast<std::int64_t>(x));
    return below < x ? below + 1 : below;
}

double waited(double waves) { return wholeness * whole(waves) + (1 - wholeness) * std::max(waves, 1.); }

// Of the tiles and parts that take least: `chosen` is told of each that takes less than all before it, with the time
// in which its parts are added.
template <class Chosen>
double best_tiles_us(const DeviceFacts& device, Dtype dtype, const GemmShape& s, Chosen chosen) {
    const auto units = static_cast<double>(device.multiprocessors);
    const double share = s.batch * (1 - 1e-12) / units;           // below whole waves, not above them by rounding
    const double unit_us = units * 2 * s.k / device.peak(dtype);  // of one wave, per element of a tile
    const double sum_us = split_traffic * s.batch * s.m * s.n / device.bytes_per_us;
    double best = HUGE_VAL;
    for (const auto& tile : tiles) {
        const double full = share * whole(s.m * tile.per_row) * whole(s.n * tile.per_column);
        const double wave_us = unit_us * tile.elements;
        const double least_us = full * wave_us;  // nothing waits
        if (least_us >= best) continue;
        if (const double us = waited(full) * wave_us; us < best) {
            best = us;
            chosen(tile, 1., 0.);
        }
        if (full > 8) continue;  // then parts save less of the last wave than they cost
        for (const double parts : {2., 4., 8.}) {
            const double sum_up_us = split_us + parts * sum_us;
            if (least_us + sum_up_us >= best) break;
            if (const double us = waited(full * parts) * wave_us / parts + sum_up_us; us < best) {
                best = us;
                chosen(tile, parts, sum_up_us);
            }
        }
    }
    return best;
}

}  // namespace

double gemm_roofline_us(const DeviceFacts& device, Dtype dtype, const GemmShape& s) {
    return roofline_launch_us +
           std::max(s.batch * 2 * s.m * s.n * s.k / device.peak(dtype), gemm_traffic(dtype, s) / device.bytes_per_us);
}

double gemm_tiles_us(const DeviceFacts& device, Dtype dtype, const GemmShape& s) {
    const double best = best_tiles_us(device, dtype, s, [](const Tile&, double, double) {});
    return tiles_launch_us + std::max(best, traffic_share * gemm_traffic(dtype, s) / device.bytes_per_us);
}

GemmBase gemm_base(const DeviceFacts& device, Dtype dtype, const GemmShape& s) {
    GemmBase base;
    base.traffic_bytes = gemm_traffic(dtype, s);
    base.peak_us = s.batch * 2 * s.m * s.n * s.k / device.peak(dtype);
    base.launch_us = roofline_launch_us;
    base.compute_us = base.full_us = base.peak_us;
    base.traffic_us = base.traffic_bytes / device.bytes_per_us;
    if (device.family != Family::ampere) return base;
    base.launch_us = tiles_launch_us;
    base.traffic_us *= traffic_share;
    base.full_us /= fastest;
    GemmTiling tiling;
    base.compute_us = best_tiles_us(device, dtype, s, [&](const Tile& tile, double parts, double sum_up_us) {
        const double rows = whole(s.m * tile.per_row), columns = whole(s.n * tile.per_column);
        const double count = s.batch * rows * columns;
        const double waves = count * parts * (1 - 1e-12) / static_cast<double>(device.multiprocessors);
        tiling = {tile.height,
                  tile.width,
                  parts,
                  count * parts,
                  waves,
                  waited(waves) / waves,
                  rows * tile.height * columns * tile.width / (s.m * s.n),
                  sum_up_us};
    });
    base.tiling = tiling;
    return base;
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
    const double traffic = bytes_of(dtype) * (weights + rows * (2 * s.hidden + 3 * width));
    return 5 + std::max(2 * rows * 3 * s.hidden * width / device.peak(dtype), traffic / device.bytes_per_us);
}

double linear_base_us(const DeviceFacts& device, const DeltaNet& query) {
    const auto positions = static_cast<double>(query.batch) * static_cast<double>(query.seq_len);
    if (query.kernel == LinearKernel::causal_conv1d_fn) {
        const auto columns =
            static_cast<double>(2 * query.key_heads * query.key_dim + query.value_heads * query.value_dim);
        return 2 + 4 * positions * columns / device.bytes_per_us;
    }
    constexpr double chunk = 64, us_a_chunk = 3;
    const auto blocks = static_cast<double>(query.batch) * static_cast<double>(query.value_heads);
    return 5 + us_a_chunk * whole(blocks / static_cast<double>(device.multiprocessors)) *
                   whole(static_cast<double>(query.seq_len) / chunk);
}

}  // namespace pipeweaver::costdb
