#include "costdb/tables/linear_table.hpp"

#include "costdb/tables/base_cost.hpp"

#include <cmath>
#include <set>
#include <tuple>

namespace pipeweaver::costdb {

namespace {

DeltaNet asked_by(const LinearPoint& p) {
    return {p.kernel, p.batch, p.seq_len, p.key_heads, p.value_heads, p.key_dim, p.value_dim};
}

}  // namespace

LinearTable::LinearTable(const DeviceFacts& device, std::span<const LinearPoint> points) {
    constexpr SparseGrid<4>::Key heads_then_batch_then_positions{3, 2, 0, 1};
    const auto kind_of_point = [](const LinearPoint& p) { return std::tuple(p.kernel, p.key_dim, p.value_dim); };
    std::set<std::tuple<LinearKernel, std::int64_t, std::int64_t>> kinds;
    for (const LinearPoint& p : points) kinds.insert(kind_of_point(p));
    for (const auto& kind : kinds) {
        std::vector<SparseGrid<4>::Point> ratios;
        Grid grid{std::get<0>(kind), std::get<1>(kind), std::get<2>(kind), {}, {}};
        for (const LinearPoint& p : points) {
            if (kind_of_point(p) != kind) continue;
            const double base_ns = 1e3 * linear_base_us(device, asked_by(p));
            ratios.push_back({{p.batch, p.seq_len, p.key_heads, p.value_heads},
                              std::log(static_cast<double>(p.latency_ns) / base_ns)});
            grid.measured.push_back({p.latency_ns, p.spread_permille});
        }
        grid.ratios = SparseGrid<4>(ratios, heads_then_batch_then_positions);
        grids_.push_back(std::move(grid));
    }
}

Answer LinearTable::cost(const DeviceFacts& device, const DeltaNet& query) const {
    const double base_ns = 1e3 * linear_base_us(device, query);
    const auto error = [&](Region region, double doubt = 0) {
        return error_percent(Subject::linear, device.family, region, false, doubt);
    };
    for (const Grid& grid : grids_) {
        if (grid.kernel != query.kernel || grid.key_dim != query.key_dim || grid.value_dim != query.value_dim) continue;
        const auto place = grid.ratios.place_of({query.batch, query.seq_len, query.key_heads, query.value_heads});
        if (const auto hit = grid.ratios.exact(place); hit >= 0)
            return exact_answer(grid.measured[static_cast<std::size_t>(hit)]);
        const auto found = grid.ratios.estimate_at(place);
        const Estimate estimate = found ? *found : grid.ratios.nearest(place.at);
        const Region region = estimate.beyond ? Region::beyond : estimate.off_grid ? Region::off_grid : Region::on_grid;
        return {base_ns * std::exp(estimate.value), estimate.beyond ? Basis::extrapolated : Basis::interpolated,
                error(region, estimate.doubt)};
    }
    return {base_ns, Basis::modelled, error(Region::modelled)};
}

}  // namespace pipeweaver::costdb
