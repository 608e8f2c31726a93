#include "costdb/tables/attention_table.hpp"

#include "costdb/tables/base_cost.hpp"
#include "costdb/tables/calibration.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

namespace pipeweaver::costdb {

namespace {

constexpr double big_ns = 200e3;

template <class T>
AttentionShape shape_of(const T& x) {
    return {static_cast<double>(x.batch),    static_cast<double>(x.seq_len),  static_cast<double>(x.q_heads),
            static_cast<double>(x.kv_heads), static_cast<double>(x.head_dim), x.causal};
}

using KeysOfHeads = std::map<std::int64_t, std::int64_t>;
using FewKeys = std::map<std::int64_t, KeysOfHeads>;

/// The most key heads that were measured with so many query heads or fewer.
std::int64_t most_keys(const KeysOfHeads& measured, std::int64_t heads) {
    std::int64_t most = measured.begin()->second;
    for (const auto& [q_heads, kv_heads] : measured)
        if (q_heads <= heads) most = std::max(most, kv_heads);
    return most;
}

/// Place in the grid. As many key heads as query heads is one position for all numbers of heads, above all others: what
/// changes along the query heads is the load, not the kernel. Of sizes in `few_keys` more key heads are placed as the
/// most that were measured with no more query heads: they change the traffic, which is in the base time. A single head
/// with its own key was measured of these, too, but leaves the device empty and says nothing of many.
template <class T>
SparseGrid<5>::Key key_of(const T& x, const FewKeys& few_keys) {
    constexpr std::int64_t one_each = 128;
    const auto few = few_keys.find(x.head_dim);
    if (few != few_keys.end())
        return {x.batch, x.seq_len, x.q_heads, std::min(x.kv_heads, most_keys(few->second, x.q_heads)), x.head_dim};
    const auto kv = x.kv_heads == x.q_heads ? one_each : std::min<std::int64_t>(x.kv_heads, one_each - 1);
    return {x.batch, x.seq_len, x.q_heads, kv, x.head_dim};
}

/// Of the points of one kernel.
FewKeys few_keys_of(std::span<const AttentionPoint> points, Pass pass, bool causal) {
    FewKeys few;
    std::set<std::int64_t> own;
    for (const auto& p : points) {
        if (p.pass != pass || p.causal != causal) continue;
        std::int64_t& most = few[p.head_dim][p.q_heads];
        most = std::max(most, p.kv_heads);
        if (p.q_heads > 1 && p.kv_heads == p.q_heads) own.insert(p.head_dim);
    }
    std::erase_if(few, [&](const auto& one) { return own.contains(one.first); });
    return few;
}

double error_of(const DeviceFacts& device, const Attention& query, Region region, double ns, double doubt = 0) {
    const auto subject = query.causal ? Subject::attention_causal : Subject::attention_encoder;
    return error_percent(subject, device.family, region, ns > big_ns, doubt);
}

bool is_sixteen_bit(Dtype dtype) { return dtype == Dtype::bf16 || dtype == Dtype::fp16; }

/// Time with heads of size `to` when those of size `from` take `ns`: in long kernels half the head size saves a third,
/// since what is done per score does not shrink, in short ones next to nothing (64 to 256 on H100 and H200).
double resized(double ns, std::int64_t from, std::int64_t to) {
    constexpr double short_ns = 25e3;
    constexpr double power = 0.65;
    const double share = ns / (ns + short_ns);
    return ns * (1 - share + share * std::pow(static_cast<double>(to) / static_cast<double>(from), power));
}

/// The shape whose ratio to the base time stands for that of `query`. How far a kernel is from its base follows from
/// how full it keeps the device, that is, from its blocks (batch x heads x positions / 128). Where one batch size alone
/// was measured, a batch is therefore as many more heads, and a sequence below all measured ones as many fewer.
Attention of_equal_blocks(const SparseGrid<5>& grid, const Attention& query) {
    const auto& batches = grid.axis(0);
    if (batches.size() != 1 || batches.front() != 1) return query;
    const auto least = grid.axis(1).front();
    Attention shape = query;
    shape.batch = 1;
    shape.seq_len = std::max(query.seq_len, least);
    const auto as_heads = [&](std::int64_t heads) {
        const double blocks = static_cast<double>(query.batch * heads) * static_cast<double>(query.seq_len);
        return std::max<std::int64_t>(1, std::llround(blocks / static_cast<double>(shape.seq_len)));
    };
    shape.q_heads = as_heads(query.q_heads);
    shape.kv_heads = as_heads(query.kv_heads);
    return shape;
}

}  // namespace

AttentionTable::AttentionTable(const DeviceFacts& device, std::span<const AttentionPoint> points) {
    constexpr SparseGrid<5>::Key heads_then_batch_then_seq{4, 3, 2, 0, 1};
    for (const auto pass : {Pass::forward, Pass::backward})
        for (const bool causal : {true, false}) {
            std::vector<SparseGrid<5>::Point> ratios;
            Grid grid;
            grid.pass = pass;
            grid.causal = causal;
            grid.few_keys = few_keys_of(points, pass, causal);
            const auto count = std::count_if(points.begin(), points.end(),
                                             [&](const auto& p) { return p.pass == pass && p.causal == causal; });
            ratios.reserve(static_cast<std::size_t>(count));
            grid.measured.reserve(static_cast<std::size_t>(count));
            for (const auto& p : points) {
                if (p.pass != pass || p.causal != causal) continue;
                const double base_ns = 1e3 * attention_base_us(device, shape_of(p));
                ratios.push_back({key_of(p, grid.few_keys), std::log(static_cast<double>(p.latency_ns) / base_ns)});
                grid.measured.push_back({p.latency_ns, p.spread_permille});
            }
            if (ratios.empty()) continue;
            grid.ratios = SparseGrid<5>(ratios, heads_then_batch_then_seq);
            grids_.push_back(std::move(grid));
        }
}

const AttentionTable::Grid* AttentionTable::find(Pass pass, bool causal) const {
    for (const auto& grid : grids_)
        if (grid.pass == pass && grid.causal == causal) return &grid;
    return nullptr;
}

/// Of a head size that is on the grid.
Answer AttentionTable::of_size(const Grid& grid, const DeviceFacts& device, const Attention& query) {
    const auto place = grid.ratios.place_of(key_of(query, grid.few_keys));
    const auto few = grid.few_keys.find(query.head_dim);
    const bool as_asked = few == grid.few_keys.end() || query.kv_heads <= most_keys(few->second, query.q_heads);
    if (const auto hit = grid.ratios.exact(place); hit >= 0 && as_asked && query.dtype == Dtype::bf16)
        return exact_answer(grid.measured[static_cast<std::size_t>(hit)]);
    const auto like = grid.ratios.place_of(key_of(of_equal_blocks(grid.ratios, query), grid.few_keys));
    const auto found = grid.ratios.estimate_at(like);
    const auto estimate = found ? *found : grid.ratios.nearest(like.at);
    const double ns = 1e3 * std::exp(estimate.value) * attention_base_us(device, shape_of(query));
    const auto region = estimate.beyond ? Region::beyond : estimate.off_grid ? Region::off_grid : Region::on_grid;
    return {ns, estimate.beyond ? Basis::extrapolated : Basis::interpolated,
            error_of(device, query, region, ns, estimate.doubt)};
}

/// A head runs as the next measured size up. Where that is more than 4/3 of its own, the next size down may know more;
/// either is scaled.
Answer AttentionTable::of_any_size(const Grid& grid, const DeviceFacts& device, const Attention& query) {
    const auto& sizes = grid.ratios.axis(4);
    const auto ask = [&](std::int64_t head_dim) {
        auto run = query;
        run.head_dim = head_dim;
        return of_size(grid, device, run);
    };
    const auto up = std::lower_bound(sizes.begin(), sizes.end(), query.head_dim);
    if (up == sizes.end()) {
        const double ns = resized(ask(sizes.back()).ns, sizes.back(), query.head_dim);
        return {ns, Basis::extrapolated, error_of(device, query, Region::modelled, ns)};
    }
    auto answer = ask(*up);
    if (*up == query.head_dim) return answer;
    if (4 * query.head_dim >= 3 * *up) {
        constexpr double doubt_of_padding = 0.05;
        const double error = error_of(device, query, Region::off_grid, answer.ns, doubt_of_padding);
        return {answer.ns, at_best(Basis::interpolated, answer.basis), std::max(answer.error_percent, error)};
    }
    auto size = *up;
    if (up != sizes.begin())
        if (const auto narrower = ask(*std::prev(up)); narrower.error_percent < answer.error_percent) {
            answer = narrower;
            size = *std::prev(up);
        }
    const double ns = resized(answer.ns, size, query.head_dim);
    return {ns, Basis::extrapolated, combined(answer.error_percent, error_of(device, query, Region::like, ns))};
}

/// Encoder heads wider than measured: the widest measured, times what the causal kernel takes for the wider.
Answer AttentionTable::wider_encoder(const Grid& encoder, const Grid& causal, const DeviceFacts& device,
                                     const Attention& query) {
    const auto& causal_sizes = causal.ratios.axis(4);
    const auto ask = [&](const Grid& grid, std::int64_t head_dim) {
        auto shape = query;
        shape.causal = grid.causal;
        shape.head_dim = head_dim;
        return of_size(grid, device, shape).ns;
    };
    // Between measured sizes as a power of the size; what the kernel pads to is not known of other kernels.
    const auto causal_time = [&](std::int64_t head_dim) {
        const auto up = std::lower_bound(causal_sizes.begin(), causal_sizes.end(), head_dim);
        if (up == causal_sizes.end()) return resized(ask(causal, causal_sizes.back()), causal_sizes.back(), head_dim);
        if (*up == head_dim || up == causal_sizes.begin()) return resized(ask(causal, *up), *up, head_dim);
        const auto log_of = [](std::int64_t x) { return std::log(static_cast<double>(x)); };
        const auto low = *std::prev(up);
        const double t = (log_of(head_dim) - log_of(low)) / (log_of(*up) - log_of(low));
        return std::pow(ask(causal, low), 1 - t) * std::pow(ask(causal, *up), t);
    };
    const auto widest = encoder.ratios.axis(4).back();
    const double ns = ask(encoder, widest) * std::max(1., causal_time(query.head_dim) / causal_time(widest));
    return {ns, Basis::extrapolated, error_of(device, query, Region::like, ns)};
}

Answer AttentionTable::forward(const DeviceFacts& device, const Attention& query) const {
    const auto* own = is_sixteen_bit(query.dtype) ? find(Pass::forward, query.causal) : nullptr;
    const auto* causal = is_sixteen_bit(query.dtype) ? find(Pass::forward, true) : nullptr;
    if (own && !query.causal && causal && query.head_dim > own->ratios.axis(4).back())
        return wider_encoder(*own, *causal, device, query);
    if (own) return of_any_size(*own, device, query);
    if (causal) {
        auto half = query;
        half.causal = true;
        const double ns = 2 * std::round(of_any_size(*causal, device, half).ns);  // twice the answer, as rounded
        return {ns, Basis::extrapolated, error_of(device, query, Region::unlike, ns)};
    }
    const double scale = device.bf16_flops_per_us / device.peak(query.dtype);
    const double ns =
        1e3 * attention_base_us(device, shape_of(query)) * std::max(1., scale) * attention_model_factor(query.causal);
    return {ns, Basis::modelled, error_of(device, query, Region::modelled, ns)};
}

Answer AttentionTable::cost(const DeviceFacts& device, const Attention& query) const {
    if (query.pass == Pass::forward) return forward(device, query);
    const auto forwards = forward(device, query);
    const double blocks = static_cast<double>(query.batch) * static_cast<double>(query.q_heads) *
                          static_cast<double>(query.seq_len) / 128;
    const double ratio = attention_ratio(device.family, blocks / static_cast<double>(device.multiprocessors));
    const bool big = forwards.ns > big_ns;
    const Answer scaled{forwards.ns * ratio, at_best(Basis::interpolated, forwards.basis),
                        combined(forwards.error_percent, attention_ratio_error_percent(device.family, big))};
    const auto* grid = find(Pass::backward, query.causal);
    if (!grid || !is_sixteen_bit(query.dtype)) return scaled;
    const auto measured = of_any_size(*grid, device, query);
    return measured.basis == Basis::exact || measured.error_percent < scaled.error_percent ? measured : scaled;
}

}  // namespace pipeweaver::costdb
