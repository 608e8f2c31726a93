// A transfer held against a table that it does not see.
#include "costdb/tables/device_facts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/costdb/evaluate.hpp"
#include "pipeweaver/costdb/leave_out.hpp"

#include <set>
#include <tuple>

namespace pipeweaver::costdb {

namespace {

using ShapeKey = std::tuple<Dtype, std::int64_t, std::int64_t, std::int64_t>;
ShapeKey shape_key(const GemmPoint& p) { return {p.dtype, p.m, p.n, p.k}; }

LeftOut compared(const GemmPoint& p, const Cost& answer, double answer_ns) {
    return {"gemm",       std::string(name_of(p.dtype)),     false,     is_big(p),
            answer.basis, static_cast<double>(p.latency_ns), answer_ns, answer.error_percent};
}

/// Forward points of the number formats that the donor has forward points of too.
std::vector<GemmPoint> shared_points(const CostDatabase& donor, const CostDatabase& device) {
    std::set<Dtype> theirs;
    for (const auto& p : donor.measurements().gemm)
        if (p.pass == Pass::forward) theirs.insert(p.dtype);
    std::vector<GemmPoint> points;
    for (const auto& p : device.measurements().gemm)
        if (p.pass == Pass::forward && theirs.contains(p.dtype)) points.push_back(p);
    return points;
}

/// The points among `all` that the tool would have measured, for each number format.
std::vector<GemmPoint> chosen_points(const CostDatabase& donor, const std::vector<GemmPoint>& all, std::size_t points) {
    std::vector<NeededGemm> needs;
    for (const auto& p : all)
        if (is_big(p)) needs.push_back({query_of(p)});
    std::set<ShapeKey> wanted;
    for (const auto& g : shapes_to_measure(donor, needs, points)) wanted.insert({g.dtype, g.m, g.n, g.k});
    std::vector<GemmPoint> chosen;
    for (const auto& p : all)
        if (wanted.contains(shape_key(p))) chosen.push_back(p);
    return chosen;
}

}  // namespace

TransferTrial try_transfer(const CostDatabase& donor, const CostDatabase& device, std::size_t points) {
    const auto all = shared_points(donor, device);
    Measurements measured;
    measured.device = device.device();
    measured.origins = device.measurements().origins;
    measured.gemm = chosen_points(donor, all, points);
    std::set<ShapeKey> seen;
    for (const auto& p : measured.gemm) seen.insert(shape_key(p));

    auto transferred = transfer(donor, std::move(measured));
    const auto served = CostDatabase::from(std::move(transferred.points));
    const auto from = facts_of(donor.device()), to = facts_of(device.device());
    std::vector<LeftOut> hidden, by_peak;
    for (const auto& p : all) {
        if (seen.contains(shape_key(p))) continue;
        const auto answer = served.cost(query_of(p));
        const auto donors = donor.cost(query_of(p));
        hidden.push_back(compared(p, answer, static_cast<double>(answer.duration.count())));
        const double scale = from.peak(p.dtype) / to.peak(p.dtype);
        by_peak.push_back(compared(p, donors, scale * static_cast<double>(donors.duration.count())));
    }
    return {std::move(transferred.reports), summary(hidden), summary(by_peak)};
}

}  // namespace pipeweaver::costdb
