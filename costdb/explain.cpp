#include "pipeweaver/costdb/explain.hpp"

#include "costdb/tables/base_cost.hpp"
#include "costdb/tables/checks.hpp"
#include "costdb/tables/device_facts.hpp"
#include "pipeweaver/base/error.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace pipeweaver::costdb {

namespace {

GemmBase base_of(const DeviceFacts& device, const Gemm& g) {
    return gemm_base(
        device, g.dtype,
        {static_cast<double>(g.m), static_cast<double>(g.n), static_cast<double>(g.k), static_cast<double>(g.batch)});
}

bool is_of_traffic(const GemmBase& base) { return base.traffic_us > base.compute_us; }

Losses losses_of(const GemmBase& base) {
    const double body = std::max(base.compute_us, base.traffic_us);
    Losses losses{.launch = (base.launch_us + body) / body};
    if (is_of_traffic(base)) {
        losses.memory = body / base.full_us;
    } else if (base.tiling) {
        losses.wave = base.tiling->wave_loss;
        losses.alignment = base.tiling->padding;
        losses.kernel = body / base.full_us / losses.wave / losses.alignment;
    }
    return losses;
}

// By the device's peaks alone.
Bound bound_of(const GemmBase& base, const DeviceFacts& device) {
    const double traffic_us = base.traffic_bytes / device.bytes_per_us;
    if (base.launch_us > std::max(base.peak_us, traffic_us)) return Bound::launch;
    return traffic_us > base.peak_us ? Bound::memory : Bound::compute;
}

std::optional<Tiling> tiling_of(const GemmBase& base, const DeviceFacts& device) {
    if (!base.tiling) return std::nullopt;
    const auto& t = *base.tiling;
    return Tiling{std::llround(t.rows),   std::llround(t.columns),
                  std::llround(t.parts),  std::llround(t.tiles),
                  device.multiprocessors, t.tiles / static_cast<double>(device.multiprocessors)};
}

// Values of 16 bytes; fp4 has two in a byte.
std::int64_t aligned_values(Dtype dtype) { return dtype == Dtype::nvfp4 ? 32 : 16 / size_of(dtype); }

double logarithmic_mean(double a, double b) { return a == b ? a : (b - a) / std::log(b / a); }

struct LossChange {
    Cause cause;
    double by;  // of the logarithm
};

void require_forward(const Gemm& g) {
    if (g.pass != Pass::forward) fail(ErrorKind::input, "pass: is {}, only forward is explained", name_of(g.pass));
}

}  // namespace

std::string_view name_of(Bound bound) {
    constexpr std::array<std::string_view, 3> names{"compute", "memory", "launch"};
    return names.at(static_cast<std::size_t>(bound));
}

std::string_view name_of(Cause cause) {
    constexpr std::array<std::string_view, 6> names{"launch", "memory", "crossover", "wave", "alignment", "kernel"};
    return names.at(static_cast<std::size_t>(cause));
}

Explanation explain(const CostDatabase& database, const Gemm& product) {
    require_forward(product);
    const auto device = facts_of(database.device());
    Explanation answer;
    answer.product = product;
    answer.cost = database.cost(product);
    const auto base = base_of(device, product);
    const double us = 1e-3 * static_cast<double>(answer.cost.duration.count());
    answer.flops = base.peak_us * device.peak(product.dtype);
    answer.tflops_per_s = 1e-6 * answer.flops / us;
    answer.share_of_peak = base.peak_us / us;
    answer.peak_us = base.peak_us;
    answer.traffic_bytes = base.traffic_bytes;
    answer.traffic_us = base.traffic_bytes / device.bytes_per_us;
    answer.bound = bound_of(base, device);
    answer.losses = losses_of(base);
    answer.tiling = tiling_of(base, device);
    const auto values = aligned_values(product.dtype);
    answer.aligned = product.n % values == 0 && product.k % values == 0;
    return answer;
}

std::optional<Cause> cause_between(const CostDatabase& database, const Gemm& from, const Gemm& to) {
    const auto device = facts_of(database.device());
    const auto one = base_of(device, from), other = base_of(device, to);
    const auto here = losses_of(one), there = losses_of(other);
    const double whole = std::log(there.all() / here.all());
    if (std::abs(whole) < std::log(least_change)) return std::nullopt;
    // A sum changes by the changes of its parts, each at its logarithmic mean over the sum's.
    const double body_here = here.all() / here.launch, body_there = there.all() / there.launch;
    const double weight = logarithmic_mean(body_here, body_there) / logarithmic_mean(here.all(), there.all());
    const auto change = [weight](double a, double b) { return weight * std::log(b / a); };
    const double of_body = change(body_here, body_there);
    std::vector<LossChange> changes{{Cause::launch, whole - of_body}};
    if (is_of_traffic(one) != is_of_traffic(other)) {
        changes.push_back({Cause::crossover, of_body});
    } else {
        changes.push_back({Cause::memory, change(here.memory, there.memory)});
        changes.push_back({Cause::wave, change(here.wave, there.wave)});
        changes.push_back({Cause::alignment, change(here.alignment, there.alignment)});
        changes.push_back({Cause::kernel, change(here.kernel, there.kernel)});
    }
    const auto most = std::max_element(changes.begin(), changes.end(), [&](const LossChange& a, const LossChange& b) {
        return whole > 0 ? a.by < b.by : a.by > b.by;
    });
    return most->cause;
}

std::optional<Cause> cause_of_gain(const CostDatabase& database, const Explanation& here, const Explanation& there) {
    if (there.losses.all() >= here.losses.all()) return std::nullopt;
    return cause_between(database, here.product, there.product);
}

std::vector<std::int64_t> sizes_near(std::int64_t size) {
    const auto unsigned_size = static_cast<std::uint64_t>(size);
    const auto step = std::max<std::int64_t>(8, static_cast<std::int64_t>(std::bit_floor(unsigned_size / 64)));
    const std::int64_t away = size / 8;
    std::vector<std::int64_t> sizes;
    for (std::int64_t near = std::max(step, (size - away + step - 1) / step * step); near <= size + away; near += step)
        if (near != size) sizes.push_back(near);
    return sizes;
}

namespace {

struct ProductAxis {
    std::string_view name;
    std::int64_t Gemm::*size;
    bool is_split;  // over tensor parallel GPUs
};
constexpr std::array<ProductAxis, 3> product_axes{
    {{"m", &Gemm::m, false}, {"n", &Gemm::n, true}, {"k", &Gemm::k, true}}};

std::vector<std::int64_t> sizes_to_try(const ProductAxis& axis, std::int64_t size) {
    auto sizes = sizes_near(size);
    if (axis.is_split && size % 2 == 0) sizes.push_back(size / 2);
    if (axis.is_split) sizes.push_back(size * 2);
    std::erase_if(sizes, [](std::int64_t one) { return one > largest_size; });
    return sizes;
}

// Answers above 100 days are refused, and a neighbour is less than twice as slow per FLOP.
constexpr double longest_neighbour_ns = 50 * 86'400e9;

bool is_too_long(const Explanation& here, std::int64_t from, std::int64_t to) {
    return static_cast<double>(here.cost.duration.count()) * static_cast<double>(to) / static_cast<double>(from) >
           longest_neighbour_ns;
}

}  // namespace

std::vector<Neighbour> faster_neighbours(const CostDatabase& database, const Explanation& here) {
    std::vector<Neighbour> all;
    for (const auto& axis : product_axes) {
        std::optional<Neighbour> best;
        for (const auto size : sizes_to_try(axis, here.product.*axis.size)) {
            auto product = here.product;
            if (is_too_long(here, product.*axis.size, size)) continue;
            product.*axis.size = size;
            const auto there = explain(database, product);
            const double gain = there.tflops_per_s / here.tflops_per_s - 1;
            if (gain <= (best ? best->gain : least_gain)) continue;
            const double error = std::max(here.cost.error_percent, there.cost.error_percent);
            best = Neighbour{std::string(axis.name), there, gain, 100 * gain > error,
                             cause_of_gain(database, here, there)};
        }
        if (best) all.push_back(std::move(*best));
    }
    return all;
}

}  // namespace pipeweaver::costdb
