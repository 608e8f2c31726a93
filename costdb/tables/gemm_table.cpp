#include "costdb/tables/gemm_table.hpp"

#include "costdb/tables/base_cost.hpp"
#include "costdb/tables/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

namespace pipeweaver::costdb {

namespace {

// From m = 16 on, kernels of Hopper treat m that is a multiple of 16 and other m differently: fp8 with m = 1025 takes
// 1.65 times the time of m = 1024. Below 16 there is one class, and both may lean on it.
int class_of_m(std::size_t axis, std::int64_t m) { return axis != 0 || m < 16 ? 0 : m % 16 == 0 ? 1 : 2; }

GemmShape shape_of(const Gemm& query) {
    return {static_cast<double>(query.m), static_cast<double>(query.n), static_cast<double>(query.k),
            static_cast<double>(query.batch)};
}

bool is_big(const GemmShape& s) { return s.batch * s.m >= 512 && s.batch * s.m * s.n * s.k >= 0x1p33; }

Subject subject_of(Dtype dtype) { return size_of(dtype) == 1 ? Subject::gemm_fp8 : Subject::gemm_bf16; }

// The measured format that runs on the same units at the same speed.
Dtype measured_dtype(Dtype dtype) {
    if (dtype == Dtype::fp16) return Dtype::bf16;
    return dtype == Dtype::int8 ? Dtype::fp8 : dtype;
}

Region region_of(const Estimate& estimate) {
    if (estimate.beyond) return Region::beyond;
    return estimate.off_grid ? Region::off_grid : Region::on_grid;
}

}  // namespace

GemmTable::GemmTable(const DeviceFacts& device, std::span<const GemmPoint> points) {
    constexpr SparseGrid<3>::Key n_then_k_then_m{1, 2, 0};
    const auto classes = device.family == Family::ampere ? SparseGrid<3>::one_class : class_of_m;
    const auto kind_of = [](const GemmPoint& p) { return std::pair{p.dtype, p.pass}; };
    std::set<std::pair<Dtype, Pass>> kinds;
    for (const auto& p : points) kinds.insert(kind_of(p));
    for (const auto& kind : kinds) {
        std::vector<SparseGrid<3>::Point> ratios;
        Grid grid;
        grid.dtype = kind.first;
        grid.pass = kind.second;
        const auto count =
            std::count_if(points.begin(), points.end(), [&](const auto& p) { return kind_of(p) == kind; });
        ratios.reserve(static_cast<std::size_t>(count));
        grid.measured.reserve(static_cast<std::size_t>(count));
        for (const auto& p : points) {
            if (kind_of(p) != kind) continue;
            const GemmShape shape{static_cast<double>(p.m), static_cast<double>(p.n), static_cast<double>(p.k)};
            const double base_ns = 1e3 * gemm_base_us(device, p.dtype, shape);
            ratios.push_back({{p.m, p.n, p.k}, std::log(static_cast<double>(p.latency_ns) / base_ns)});
            grid.measured.push_back({p.latency_ns, p.spread_permille});
        }
        grid.ratios = SparseGrid<3>(ratios, n_then_k_then_m, classes);
        grids_.push_back(std::move(grid));
    }
}

const GemmTable::Grid* GemmTable::find(Dtype dtype, Pass pass) const {
    for (const auto& grid : grids_)
        if (grid.dtype == dtype && grid.pass == pass) return &grid;
    return nullptr;
}

Answer GemmTable::from_grid(const Grid& grid, const DeviceFacts& device, const Gemm& query) {
    // A batch of GEMMs has the operations and output tiles of one with batch * m rows, but reads batch weights.
    const auto longest = grid.ratios.axis(0).back();
    const auto rows = query.batch * query.m;
    const Gemm single{.dtype = grid.dtype, .m = std::min(rows, longest), .n = query.n, .k = query.k};
    const auto place = grid.ratios.place_of({single.m, single.n, single.k});
    if (query.batch == 1 && rows <= longest && query.dtype == grid.dtype)
        if (const auto hit = grid.ratios.exact(place); hit >= 0)
            return exact_answer(grid.measured[static_cast<std::size_t>(hit)]);
    const auto found = grid.ratios.estimate_at(place);
    const auto estimate = found ? *found : grid.ratios.nearest(place.at);
    double ns = 1e3 * std::exp(estimate.value) * gemm_base_us(device, grid.dtype, shape_of(single));
    if (query.batch > 1) {
        auto whole = shape_of(single);
        whole.m = static_cast<double>(rows);
        ns *= gemm_base_us(device, grid.dtype, shape_of(query)) / gemm_base_us(device, grid.dtype, whole);
    }
    if (rows > longest) ns *= static_cast<double>(rows) / static_cast<double>(longest);
    const auto region = rows > longest || query.batch > 1 ? Region::beyond : region_of(estimate);
    return {ns, region == Region::beyond ? Basis::extrapolated : Basis::interpolated,
            error_percent(subject_of(grid.dtype), device.family, region, is_big(shape_of(query)), estimate.doubt)};
}

constexpr double tf32_error_percent = 20;          // assumed: no TF32 product is measured
constexpr double block_scales_error_percent = 20;  // assumed, on devices where none are

Answer GemmTable::forward(const DeviceFacts& device, const Gemm& query) const {
    static_cast<void>(device.peak(query.dtype));  // refuses a missing dtype
    if (const auto* grid = find(measured_dtype(query.dtype), Pass::forward)) return from_grid(*grid, device, query);
    if (query.dtype == Dtype::fp32 && find(Dtype::bf16, Pass::forward) != nullptr) {
        // TF32: twice the bytes a value, half the values a cycle, as a bf16 product of twice the depth.
        auto deeper = query;
        deeper.dtype = Dtype::bf16;
        deeper.k *= 2;
        const auto answer = forward(device, deeper);
        return {answer.ns, Basis::modelled, std::max(answer.error_percent, tf32_error_percent)};
    }
    if (query.dtype == Dtype::fp8_block && find(Dtype::fp8, Pass::forward) != nullptr) {
        // Where both were measured, blocks' scales took 0.90 to 0.92 of the time (median of 1,942 big shapes): as fp8.
        auto by_tensor = query;
        by_tensor.dtype = Dtype::fp8;
        const auto answer = forward(device, by_tensor);
        return {answer.ns, Basis::modelled, std::max(answer.error_percent, block_scales_error_percent)};
    }
    const double roofline_us = gemm_roofline_us(device, query.dtype, shape_of(query));
    return {1e3 * roofline_us * gemm_model_factor(query.dtype), Basis::modelled,
            error_percent(subject_of(query.dtype), device.family, Region::modelled, is_big(shape_of(query)))};
}

Answer GemmTable::cost(const DeviceFacts& device, const Gemm& query) const {
    if (query.pass == Pass::forward) return forward(device, query);
    if (query.pass == Pass::backward) {
        auto half = query;
        half.pass = Pass::backward_input;
        const auto input = cost(device, half);
        half.pass = Pass::backward_weight;
        const auto weight = cost(device, half);
        return {input.ns + weight.ns, std::max(input.basis, weight.basis),
                std::max(input.error_percent, weight.error_percent)};
    }
    const auto forwards = forward(device, query);
    const Answer scaled{forwards.ns * gemm_ratio(device.family, query.pass),
                        at_best(Basis::interpolated, forwards.basis),
                        combined(forwards.error_percent, gemm_ratio_error_percent(query.pass))};
    const auto* grid = find(measured_dtype(query.dtype), query.pass);
    if (!grid) return scaled;
    const auto measured = from_grid(*grid, device, query);
    return measured.basis == Basis::exact || measured.error_percent < scaled.error_percent ? measured : scaled;
}

}  // namespace pipeweaver::costdb
