#include "costdb/attention_table.hpp"

#include "costdb/base_cost.hpp"
#include "costdb/calibration.hpp"

#include <cmath>
#include <map>

namespace pipeweaver::costdb {

namespace {

constexpr double big_ns = 200e3;

AttentionShape shape_of(const Attention& query) {
    return {static_cast<double>(query.batch),    static_cast<double>(query.seq_len),
            static_cast<double>(query.q_heads),  static_cast<double>(query.kv_heads),
            static_cast<double>(query.head_dim), query.causal};
}

AttentionShape shape_of(const AttentionPoint& p) {
    return {static_cast<double>(p.batch),    static_cast<double>(p.seq_len),  static_cast<double>(p.q_heads),
            static_cast<double>(p.kv_heads), static_cast<double>(p.head_dim), p.causal};
}

Subject subject_of(const Attention& query) {
    return query.causal ? Subject::attention_causal : Subject::attention_encoder;
}

double error_of(const DeviceFacts& device, const Attention& query, Region region, double ns) {
    return error_percent(subject_of(query), device.family, region, ns > big_ns);
}

}  // namespace

AttentionTable::AttentionTable(const DeviceFacts& device, std::span<const AttentionPoint> points) {
    struct Parts {
        std::vector<SparseGrid<3>::Point> ratios;
        std::vector<std::int64_t> latency_ns;
    };
    std::map<Kind, Parts> parts;
    for (const auto& p : points) {
        const double base_ns = 1e3 * attention_base_us(device, shape_of(p));
        const double ratio = std::log(static_cast<double>(p.latency_ns) / base_ns);
        auto& part = parts[{p.pass, p.causal, p.head_dim, p.kv_heads == p.q_heads ? 0 : p.kv_heads}];
        part.ratios.push_back({{p.batch, p.seq_len, p.q_heads}, ratio});
        part.latency_ns.push_back(p.latency_ns);
    }
    constexpr SparseGrid<3>::Key heads_then_batch_then_seq{2, 0, 1};
    // Batch says more than the others: doubling it changes the occupancy, and nothing in the kernel.
    constexpr std::array<double, 3> weights{2, 1, 1};
    for (auto& [kind, part] : parts)
        grids_.push_back(
            {kind, SparseGrid<3>(std::move(part.ratios), heads_then_batch_then_seq, SparseGrid<3>::one_class, weights),
             std::move(part.latency_ns)});
}

/// The grid whose number of key heads is nearest in logarithm; as many as query heads first, then the smaller.
const AttentionTable::Grid* AttentionTable::nearest_kv(Pass pass, bool causal, std::int64_t head_dim,
                                                       const Attention& query) const {
    const Grid* best = nullptr;
    double best_distance = 0;
    for (const auto& grid : grids_) {
        if (grid.kind.pass != pass || grid.kind.causal != causal || grid.kind.head_dim != head_dim) continue;
        const auto kv_heads = grid.kind.kv_heads == 0 ? query.q_heads : grid.kind.kv_heads;
        const double distance = std::abs(std::log(static_cast<double>(kv_heads) / static_cast<double>(query.kv_heads)));
        if (best && distance >= best_distance) continue;
        best = &grid;
        best_distance = distance;
    }
    return best;
}

bool AttentionTable::has_kv_heads(const Kind& kind, const Attention& query) {
    return (kind.kv_heads == 0 ? query.q_heads : kind.kv_heads) == query.kv_heads;
}

/// The smallest measured head size that holds `head_dim`, or 0.
std::int64_t AttentionTable::size_up(bool causal, std::int64_t head_dim) const {
    for (const auto& grid : grids_)
        if (grid.kind.pass == Pass::forward && grid.kind.causal == causal && grid.kind.head_dim >= head_dim)
            return grid.kind.head_dim;
    return 0;
}

std::int64_t AttentionTable::largest(bool causal) const {
    std::int64_t result = 0;
    for (const auto& grid : grids_)
        if (grid.kind.pass == Pass::forward && grid.kind.causal == causal)
            result = std::max(result, grid.kind.head_dim);
    return result;
}

/// From the tables of head size `measured_dim`; a smaller head runs as one of that size, a larger by the ratio.
Answer AttentionTable::from_size(const DeviceFacts& device, const Attention& query, std::int64_t measured_dim) const {
    const auto& grid = *nearest_kv(Pass::forward, query.causal, measured_dim, query);
    const SparseGrid<3>::Key at{query.batch, query.seq_len, query.q_heads};
    const auto found = grid.ratios.estimate(at);
    const auto estimate = found ? *found : grid.ratios.nearest(at);
    const bool same_kv = has_kv_heads(grid.kind, query);
    if (estimate.exact_index >= 0 && same_kv && query.head_dim == measured_dim && query.dtype == Dtype::bf16) {
        const auto ns = static_cast<double>(grid.latency_ns[static_cast<std::size_t>(estimate.exact_index)]);
        return {ns, Basis::exact, error_of(device, query, Region::exact, ns)};
    }
    auto run = query;
    run.head_dim = std::max(query.head_dim, measured_dim);
    const double ns = 1e3 * std::exp(estimate.value) * attention_base_us(device, shape_of(run));
    const bool like = query.head_dim > measured_dim || 4 * query.head_dim < 3 * measured_dim;
    const auto region = like                                                 ? Region::like
                        : estimate.beyond || !same_kv                        ? Region::beyond
                        : estimate.off_grid || run.head_dim > query.head_dim ? Region::off_grid
                                                                             : Region::on_grid;
    return {ns, region >= Region::beyond ? Basis::extrapolated : Basis::interpolated,
            error_of(device, query, region, ns)};
}

Answer AttentionTable::forward(const DeviceFacts& device, const Attention& query) const {
    const bool sixteen_bit = query.dtype == Dtype::bf16 || query.dtype == Dtype::fp16;
    if (const auto dim = size_up(query.causal, query.head_dim); dim && sixteen_bit)
        return from_size(device, query, dim);
    if (const auto dim = largest(true); dim && sixteen_bit && !query.causal) {
        auto causal = query;
        causal.causal = true;
        const auto up = size_up(true, query.head_dim);
        const double ns = 2 * std::round(from_size(device, causal, up ? up : dim).ns);  // twice the answer, as rounded
        return {ns, Basis::extrapolated, error_of(device, query, Region::like, ns)};
    }
    if (const auto dim = largest(query.causal); dim && sixteen_bit) return from_size(device, query, dim);
    const double scale = device.bf16_flops_per_us / device.peak(query.dtype);
    const double ns =
        1e3 * attention_base_us(device, shape_of(query)) * std::max(1., scale) * attention_model_factor(query.causal);
    return {ns, Basis::modelled, error_of(device, query, Region::modelled, ns)};
}

Answer AttentionTable::cost(const DeviceFacts& device, const Attention& query) const {
    if (query.pass == Pass::forward) return forward(device, query);
    if (const auto* grid = nearest_kv(Pass::backward, query.causal, query.head_dim, query);
        grid && query.dtype == Dtype::bf16 && has_kv_heads(grid->kind, query)) {
        const auto estimate = grid->ratios.estimate({query.batch, query.seq_len, query.q_heads});
        if (estimate && estimate->exact_index >= 0) {
            const auto ns = static_cast<double>(grid->latency_ns[static_cast<std::size_t>(estimate->exact_index)]);
            return {ns, Basis::exact, error_of(device, query, Region::exact, ns)};
        }
    }
    const auto forwards = forward(device, query);
    return {forwards.ns * attention_ratio(device.family), at_best(Basis::interpolated, forwards.basis),
            combined(forwards.error_percent, attention_ratio_error_percent(forwards.ns > big_ns))};
}

}  // namespace pipeweaver::costdb
