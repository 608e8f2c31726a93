#include "costdb/import/thinning.hpp"

#include "costdb/point_tables.hpp"
#include "costdb/tables/base_cost.hpp"
#include "costdb/tables/device_facts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace pipeweaver::costdb {

namespace {

constexpr std::array<std::int64_t, 25> kept_rows{1,    8,    16,   17,   32,   64,    65,   128,  129,
                                                 256,  257,  512,  513,  768,  1024,  1025, 1536, 2048,
                                                 2049, 3072, 4096, 4097, 8192, 16384, 32768};
constexpr std::array<std::int64_t, 16> kept_tokens{1,    16,   64,   128,  256,  384,  512,  768,
                                                   1024, 1536, 2048, 3072, 4096, 6144, 8192, 16384};
constexpr std::int64_t shortest_sequence = 64;

template <std::size_t N>
bool is_among(const std::array<std::int64_t, N>& values, std::int64_t x) {
    return std::binary_search(values.begin(), values.end(), x);
}

double roofline_ns(const DeviceFacts& device, const GemmPoint& p) {
    const GemmShape shape{static_cast<double>(p.m), static_cast<double>(p.n), static_cast<double>(p.k)};
    return 1e3 * gemm_roofline_us(device, p.dtype, shape);
}

bool is_long_and_slow(const DeviceFacts& device, const GemmPoint& p) {
    constexpr std::int64_t long_ns = 200'000;
    constexpr double slow = 1.5;
    return p.dtype == Dtype::bf16 && p.latency_ns >= long_ns &&
           static_cast<double>(p.latency_ns) > slow * roofline_ns(device, p);
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

struct Ratio {
    std::int64_t m = 0;
    double of_roofline = 0;
    std::size_t point = 0;
};

/// Marks those of a line along m that are far above the five around them.
void mark_spikes(std::vector<Ratio> line, std::vector<bool>& left_out) {
    constexpr std::size_t around = 5;
    constexpr double far_above = 1.3;
    if (line.size() < around) return;
    std::sort(line.begin(), line.end(), [](const Ratio& a, const Ratio& b) { return a.m < b.m; });
    for (std::size_t i = 0; i < line.size(); ++i) {
        const std::size_t first = std::min(i - std::min(i, around / 2), line.size() - around);
        std::vector<double> window;
        for (std::size_t j = first; j < first + around; ++j) window.push_back(line[j].of_roofline);
        if (line[i].of_roofline > far_above * median(window)) left_out[line[i].point] = true;
    }
}

std::vector<bool> spikes(const DeviceFacts& device, const std::vector<GemmPoint>& points) {
    using Along = std::tuple<Dtype, Pass, std::int64_t, std::int64_t, bool>;
    std::map<Along, std::vector<Ratio>> lines;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const GemmPoint& p = points[i];
        const double ratio = static_cast<double>(p.latency_ns) / roofline_ns(device, p);
        lines[{p.dtype, p.pass, p.n, p.k, p.m >= 16 && p.m % 16 != 0}].push_back({p.m, ratio, i});
    }
    std::vector<bool> left_out(points.size(), false);
    for (auto& [key, line] : lines) mark_spikes(std::move(line), left_out);
    return left_out;
}

/// Of products by blocks, the time until which the host decides; 0: there are none.
double host_ns(const std::vector<GemmPoint>& points) {
    constexpr std::int64_t tiny = std::int64_t{1} << 24;
    std::vector<double> times;
    for (const GemmPoint& p : points)
        if (p.dtype == Dtype::fp8_block && p.m * p.n * p.k < tiny) times.push_back(static_cast<double>(p.latency_ns));
    return times.empty() ? 0 : 2 * median(std::move(times));
}

void thin_products(const DeviceFacts& device, bool throttled, std::vector<GemmPoint>& points) {
    const std::vector<bool> is_spike = spikes(device, points);
    const double host = host_ns(points);
    std::vector<GemmPoint> kept;
    for (std::size_t i = 0; i < points.size(); ++i) {
        const GemmPoint& p = points[i];
        const bool is_of_host = p.dtype == Dtype::fp8_block && static_cast<double>(p.latency_ns) < host;
        const bool is_throttled = throttled && is_long_and_slow(device, p);
        if (is_among(kept_rows, p.m) && !is_spike[i] && !is_of_host && !is_throttled) kept.push_back(p);
    }
    points = std::move(kept);
}

}  // namespace

std::size_t thin(Measurements& points, bool throttled) {
    const std::size_t before = count_points(points);
    thin_products(facts_of(points.device), throttled, points.gemm);
    std::erase_if(points.attention, [](const auto& p) { return p.seq_len < shortest_sequence; });
    std::erase_if(points.linear, [](const auto& p) { return p.seq_len < shortest_sequence; });
    std::erase_if(points.moe, [](const auto& p) { return !is_among(kept_tokens, p.tokens); });
    return before - count_points(points);
}

}  // namespace pipeweaver::costdb
