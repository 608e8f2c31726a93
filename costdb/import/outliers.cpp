#include "costdb/import/outliers.hpp"

#include "costdb/tables/device_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>

namespace pipeweaver::costdb {

namespace {

constexpr double most_off = 2;            // times the line between the neighbours
constexpr double fastest_of_peak = 1.05;  // clocks above the rated one

struct Sample {
    double x = 0, y = 0;  // logarithms of size and latency
    std::string what;
    std::int64_t ns = 0;
};

/// How far the i-th is off the line through its neighbours, as a logarithm; 0 at the ends.
double off_the_line(const std::vector<Sample>& curve, std::size_t i) {
    if (i == 0 || i + 1 >= curve.size()) return 0;
    const auto &a = curve[i - 1], &b = curve[i], &c = curve[i + 1];
    return b.y - (a.y + (c.y - a.y) * (b.x - a.x) / (c.x - a.x));
}

void judge(std::vector<Sample> curve, std::vector<std::string>& found) {
    std::sort(curve.begin(), curve.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
    while (curve.size() >= 3) {
        std::size_t worst = 0;
        for (std::size_t i = 1; i + 1 < curve.size(); ++i)
            if (std::abs(off_the_line(curve, i)) > std::abs(off_the_line(curve, worst))) worst = i;
        const double off = off_the_line(curve, worst);
        if (std::abs(off) <= std::log(most_off)) return;
        found.push_back(fmt::format("{}: {:.3f} us, {:.1f} times {} what its neighbours say", curve[worst].what,
                                    static_cast<double>(curve[worst].ns) * 1e-3, std::exp(std::abs(off)),
                                    off > 0 ? "above" : "below"));
        curve.erase(curve.begin() + static_cast<std::ptrdiff_t>(worst));
    }
}

template <class Point, class Curve, class What>
void judge_curves(const std::vector<Point>& points, std::int64_t Point::*along, Curve curve_of, What what,
                  std::vector<std::string>& found) {
    std::map<decltype(curve_of(points.front())), std::vector<Sample>> curves;
    for (const auto& p : points)
        curves[curve_of(p)].push_back({std::log(static_cast<double>(p.*along)),
                                       std::log(static_cast<double>(p.latency_ns)), what(p), p.latency_ns});
    for (auto& [key, curve] : curves) judge(std::move(curve), found);
}

std::string name(const GemmPoint& p) {
    return fmt::format("gemm {} {} {}x{}x{}", name_of(p.dtype), name_of(p.pass), p.m, p.n, p.k);
}

void judge_speeds(const Measurements& points, std::vector<std::string>& found) {
    const auto facts = facts_of(points.device);
    for (const auto& p : points.gemm) {
        const double peak = p.dtype == Dtype::nvfp4 ? facts.fp4_flops_per_us
                            : size_of(p.dtype) == 1 ? facts.fp8_flops_per_us
                                                    : facts.peak(p.dtype);
        const double us = static_cast<double>(p.latency_ns) * 1e-3;
        const double speed =
            2 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k) / us / peak;
        if (peak > 0 && speed > fastest_of_peak)
            found.push_back(
                fmt::format("{}: {:.3f} us is {:.2f} times the peak of {}", name(p), us, speed, points.device));
    }
}

}  // namespace

std::vector<std::string> outliers(const Measurements& points) {
    std::vector<std::string> found;
    judge_curves(
        points.gemm, &GemmPoint::m, [](const auto& p) { return std::tuple(p.dtype, p.pass, p.n, p.k); },
        [](const auto& p) { return name(p); }, found);
    judge_curves(
        points.attention, &AttentionPoint::seq_len,
        [](const auto& p) { return std::tuple(p.dtype, p.pass, p.causal, p.head_dim, p.kv_heads, p.q_heads, p.batch); },
        [](const auto& p) {
            return fmt::format("attention {} {} {}x{} heads {}/{} of {}", name_of(p.dtype), name_of(p.pass), p.batch,
                               p.seq_len, p.q_heads, p.kv_heads, p.head_dim);
        },
        found);
    judge_curves(
        points.collective, &CollectivePoint::message_bytes,
        [](const auto& p) { return std::tuple(p.source, p.kind, p.dtype, p.gpus, p.gpus_per_node); },
        [](const auto& p) {
            return fmt::format("{} of {} bytes on {} GPUs", name_of(p.kind), p.message_bytes, p.gpus);
        },
        found);
    judge_curves(
        points.point_to_point, &PointToPointPoint::message_bytes,
        [](const auto& p) { return std::tuple(p.gpus_per_node); },
        [](const auto& p) { return fmt::format("transfer of {} bytes", p.message_bytes); }, found);
    judge_curves(
        points.elementwise, &ElementwisePoint::traffic_bytes, [](const auto& p) { return std::tuple(p.kind, p.pass); },
        [](const auto& p) { return fmt::format("{} of {} bytes", name_of(p.kind), p.traffic_bytes); }, found);
    judge_speeds(points, found);
    return found;
}

}  // namespace pipeweaver::costdb
