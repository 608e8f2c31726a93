#include "costdb/moe_table.hpp"

#include "costdb/base_cost.hpp"
#include "costdb/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace pipeweaver::costdb {

namespace {

template <class T>
double base_ns(const DeviceFacts& device, const T& x) {
    const MoeShape shape{static_cast<double>(x.tokens), static_cast<double>(x.hidden),  static_cast<double>(x.ffn),
                         static_cast<double>(x.top_k),  static_cast<double>(x.experts), static_cast<double>(x.moe_tp),
                         static_cast<double>(x.moe_ep)};
    return 1e3 * moe_base_us(device, x.dtype, shape);
}

}  // namespace

MoeTable::MoeTable(const DeviceFacts& device, std::span<const MoePoint> points) {
    std::map<std::tuple<Dtype, std::string, Shape>, std::vector<Token>> parts;
    for (const auto& p : points) {
        const Shape shape{p.hidden, p.ffn, p.top_k, p.experts, p.moe_tp, p.moe_ep};
        const double ratio = std::log(static_cast<double>(p.latency_ns) / base_ns(device, p));
        parts[{p.dtype, p.routing, shape}].push_back({p.tokens, ratio, p.latency_ns});
    }
    for (auto& [key, tokens] : parts) {
        std::sort(tokens.begin(), tokens.end(), [](const auto& a, const auto& b) { return a.tokens < b.tokens; });
        layers_.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), std::move(tokens)});
    }
}

MoeTable::Shape MoeTable::shape_of(const MixtureOfExperts& q) {
    return {q.hidden, q.ffn, q.top_k, q.experts, q.moe_tp, q.moe_ep};
}

const MoeTable::Layer* MoeTable::nearest(const MixtureOfExperts& query) const {
    const auto wanted = shape_of(query);
    const Layer* best = nullptr;
    double best_distance = 0;
    for (const auto& layer : layers_) {
        if (layer.dtype != query.dtype || layer.routing != query.routing) continue;
        double distance = 0;
        for (std::size_t i = 0; i < wanted.size(); ++i)
            distance += std::abs(std::log(static_cast<double>(layer.shape[i]) / static_cast<double>(wanted[i])));
        if (best && distance >= best_distance) continue;
        best = &layer;
        best_distance = distance;
    }
    return best;
}

Answer MoeTable::cost(const DeviceFacts& device, const MixtureOfExperts& query) const {
    const auto error = [&](Region region) { return error_percent(Subject::moe, device.family, region, false); };
    const double base = base_ns(device, query);
    const auto* layer = nearest(query);
    if (!layer) return {base * moe_model_factor(), Basis::modelled, error(Region::modelled)};
    const bool same = layer->shape == shape_of(query);
    const auto& points = layer->points;
    const auto above = std::lower_bound(points.begin(), points.end(), query.tokens,
                                        [](const Token& p, std::int64_t tokens) { return p.tokens < tokens; });
    if (above == points.end() || (above == points.begin() && above->tokens != query.tokens))
        return {base * std::exp(above == points.end() ? points.back().ratio : above->ratio), Basis::extrapolated,
                error(same ? Region::beyond : Region::like)};
    if (above->tokens == query.tokens) {
        if (same) return {static_cast<double>(above->latency_ns), Basis::exact, error(Region::exact)};
        return {base * std::exp(above->ratio), Basis::extrapolated, error(Region::like)};
    }
    const auto below = std::prev(above);
    const double t = std::log(static_cast<double>(query.tokens) / static_cast<double>(below->tokens)) /
                     std::log(static_cast<double>(above->tokens) / static_cast<double>(below->tokens));
    return {base * std::exp(below->ratio + t * (above->ratio - below->ratio)),
            same ? Basis::interpolated : Basis::extrapolated, error(same ? Region::on_grid : Region::like)};
}

}  // namespace pipeweaver::costdb
