#include "costdb/tables/moe_table.hpp"

#include "costdb/tables/base_cost.hpp"
#include "costdb/tables/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <map>

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
    for (const auto& p : points)
        if (routings_.empty() || routings_.back() != p.routing) routings_.push_back(p.routing);
    std::sort(routings_.begin(), routings_.end());
    routings_.erase(std::unique(routings_.begin(), routings_.end()), routings_.end());
    std::map<Kind, std::vector<Token>> parts;
    for (const auto& p : points) {
        const auto routing = std::lower_bound(routings_.begin(), routings_.end(), p.routing) - routings_.begin();
        const Shape shape{p.hidden, p.ffn, p.top_k, p.experts, p.moe_tp, p.moe_ep};
        const double ratio = std::log(static_cast<double>(p.latency_ns) / base_ns(device, p));
        parts[{p.dtype, static_cast<std::size_t>(routing), shape}].push_back(
            {p.tokens, std::log(static_cast<double>(p.tokens)), ratio, 0, {p.latency_ns, p.spread_permille}});
    }
    for (auto& [kind, tokens] : parts) {
        measure_misses(tokens);
        Layer layer{kind, {}, std::move(tokens)};
        for (std::size_t i = 0; i < kind.shape.size(); ++i)
            layer.logs[i] = std::log(static_cast<double>(kind.shape[i]));
        layers_.push_back(std::move(layer));
    }
}

void MoeTable::measure_misses(std::vector<Token>& points) {
    std::sort(points.begin(), points.end(), [](const Token& a, const Token& b) { return a.tokens < b.tokens; });
    if (points.size() < 3) return;
    for (std::size_t i = 1; i + 1 < points.size(); ++i) {
        const auto& low = points[i - 1];
        const auto& high = points[i + 1];
        const double t = (points[i].log_tokens - low.log_tokens) / (high.log_tokens - low.log_tokens);
        points[i].miss = std::abs(low.ratio + t * (high.ratio - low.ratio) - points[i].ratio);
    }
    points.front().miss = points[1].miss;
    points.back().miss = points[points.size() - 2].miss;
}

const MoeTable::Layer* MoeTable::find(const Kind& kind) const {
    const auto found = std::lower_bound(layers_.begin(), layers_.end(), kind,
                                        [](const Layer& layer, const Kind& k) { return layer.kind < k; });
    return found == layers_.end() || found->kind != kind ? nullptr : &*found;
}

const MoeTable::Layer* MoeTable::nearest(const Kind& kind) const {
    std::array<double, 6> logs;
    for (std::size_t i = 0; i < logs.size(); ++i) logs[i] = std::log(static_cast<double>(kind.shape[i]));
    const Layer* best = nullptr;
    double best_distance = 0;
    for (const auto& layer : layers_) {
        if (layer.kind.dtype != kind.dtype || layer.kind.routing != kind.routing) continue;
        double distance = 0;
        for (std::size_t i = 0; i < logs.size(); ++i) distance += std::abs(layer.logs[i] - logs[i]);
        if (best && distance >= best_distance) continue;
        best = &layer;
        best_distance = distance;
    }
    return best;
}

Answer MoeTable::cost(const DeviceFacts& device, const MixtureOfExperts& query) const {
    const auto error = [&](Region region, double doubt = 0) {
        return error_percent(Subject::moe, device.family, region, false, doubt);
    };
    const auto routing = std::find(routings_.begin(), routings_.end(), query.routing) - routings_.begin();
    const Kind kind{query.dtype,
                    static_cast<std::size_t>(routing),
                    {query.hidden, query.ffn, query.top_k, query.experts, query.moe_tp, query.moe_ep}};
    const auto* same = find(kind);
    const auto* layer = same ? same : nearest(kind);
    const double base = base_ns(device, query);
    if (!layer) return {base * moe_model_factor(), Basis::modelled, error(Region::modelled)};
    const auto& points = layer->points;
    const auto above = std::lower_bound(points.begin(), points.end(), query.tokens,
                                        [](const Token& p, std::int64_t tokens) { return p.tokens < tokens; });
    const auto like = [&](double ratio) {
        return Answer{base * std::exp(ratio), Basis::extrapolated, error(Region::like)};
    };
    const bool last = above == points.end();
    if (last || (above == points.begin() && above->tokens != query.tokens)) {
        const auto& end = last ? points.back() : *above;
        if (!same) return like(end.ratio);
        return {base * std::exp(end.ratio), Basis::extrapolated, error(Region::beyond, end.miss)};
    }
    if (above->tokens == query.tokens) return same ? exact_answer(above->measured) : like(above->ratio);
    const auto& below = *std::prev(above);
    const double t =
        (std::log(static_cast<double>(query.tokens)) - below.log_tokens) / (above->log_tokens - below.log_tokens);
    const double ratio = below.ratio + t * (above->ratio - below.ratio);
    if (!same) return like(ratio);
    return {base * std::exp(ratio), Basis::interpolated, error(Region::on_grid, (below.miss + above->miss) / 2)};
}

}  // namespace pipeweaver::costdb
