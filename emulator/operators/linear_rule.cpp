#include "pipeweaver/emulator/linear_rule.hpp"

#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/workloads/cluster.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::emulator {

using workloads::LinearAttention;
using workloads::LinearKind;

namespace {

std::int64_t chunks_of(std::int64_t length, std::int64_t chunk) { return (length + chunk - 1) / chunk; }

struct Sizes {
    explicit Sizes(const LinearAttention& shape)
        : chunk(static_cast<double>(shape.chunk)),
          key(static_cast<double>(shape.key_dim)),
          value(static_cast<double>(shape.value_dim)),
          heads(static_cast<double>(shape.value_heads)),
          groups(static_cast<double>(shape.key_heads)) {}

    double chunk, key, value, heads, groups;
};

// Of all heads, a chunk.
double delta_flops(const Sizes& s, bool forward) {
    const double square = s.chunk * s.chunk, state = s.chunk * s.key * s.value;
    if (forward) return s.heads * (square * (6 * s.key + 4 * s.value) + 6 * state + 2. / 3 * square * s.chunk);
    return s.heads * (square * (14 * s.key + 10 * s.value) + 16 * state + 4 * square * s.chunk);
}

double mamba_flops(const Sizes& s, bool forward) {
    const double square = s.chunk * s.chunk, state = s.chunk * s.key * s.value;
    if (forward) return s.heads * (4 * state + square * s.value) + s.groups * square * s.key;
    return s.heads * (10 * state + 2 * square * s.value) + s.groups * 3 * square * s.key;
}

// Of all heads, a position.
double delta_bytes(const Sizes& s, bool forward) {
    const double state = s.key * s.value / s.chunk;
    if (forward) return s.heads * (14 * s.key + 12 * s.value + 12 * s.chunk + 4 * state);
    return s.heads * (36 * s.key + 30 * s.value + 8 * s.chunk + 8 * state);
}

double mamba_bytes(const Sizes& s, bool forward) {
    const double state = s.key * s.value / s.chunk;
    if (forward) return s.heads * (6 * s.value + 16 * state) + s.groups * 8 * s.key;
    return s.heads * (18 * s.value + 40 * state) + s.groups * 16 * s.key;
}

}  // namespace

std::int64_t LinearRule::chunks() const {
    std::int64_t sum = 0;
    for (const std::int64_t length : lengths) sum += chunks_of(length, shape.chunk);
    return sum;
}

double LinearRule::flops() const {
    const Sizes sizes(shape);
    const bool forward = pass == costdb::Pass::forward;
    const double of_chunk =
        shape.kind == LinearKind::gated_delta ? delta_flops(sizes, forward) : mamba_flops(sizes, forward);
    return static_cast<double>(chunks()) * of_chunk;
}

double LinearRule::bytes() const {
    const Sizes sizes(shape);
    const bool forward = pass == costdb::Pass::forward;
    const double of_position =
        shape.kind == LinearKind::gated_delta ? delta_bytes(sizes, forward) : mamba_bytes(sizes, forward);
    return static_cast<double>(chunks() * shape.chunk) * of_position;
}

namespace {

// How fast the kernels are.
struct Speed {
    double share_of_peak;
    double states = 0;      // their part of the work
    double ns_a_chunk = 0;  // at least, in the longest sequence
};

Speed speed_of(LinearKind kind, costdb::Pass pass) {
    if (kind == LinearKind::mamba2) return {0.08};
    return pass == costdb::Pass::forward ? Speed{0.114, 0.2, 1'100} : Speed{0.087, 0.4, 3'700};
}

constexpr std::string_view measured_on = "h200_sxm";

// Of 16 sequences of 4096 positions with 16 key and 32 value heads of 128 the inference kernel takes 0.864 ms on the
// device that the training kernels were measured on.
double times_of_h200(const costdb::CostDatabase& costs) {
    constexpr double h200_ns = 863'572;
    const costdb::Cost own =
        costs.cost(costdb::DeltaNet{.batch = 16, .seq_len = 4096, .key_heads = 16, .value_heads = 32});
    return own.basis == costdb::Basis::modelled ? 0 : static_cast<double>(own.duration.count()) / h200_ns;
}

}  // namespace

double LinearRule::products_ns(double bf16_flops) const {
    return flops() / (1e-9 * speed_of(shape.kind, pass).share_of_peak * bf16_flops);
}

costdb::Cost LinearRule::cost(const costdb::CostDatabase& costs) const {
    constexpr double error_percent = 30;
    const Speed speed = speed_of(shape.kind, pass);
    const costdb::Elementwise moved{.traffic = Bytes{std::max<std::int64_t>(1, std::llround(bytes()))}};
    const auto traffic = static_cast<double>(costs.cost(moved).duration.count());
    const bool delta = shape.kind == LinearKind::gated_delta;
    const double times = delta ? times_of_h200(costs) : 0;
    const double products = times > 0 ? times * products_ns(workloads::device(measured_on).bf16_flops)
                                      : products_ns(workloads::device(costs.device()).bf16_flops);
    const double work = std::max(products, traffic);
    const std::int64_t longest = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
    const double chunks_in_turn = static_cast<double>(chunks_of(longest, shape.chunk));
    const double states = (times > 0 ? times : 1) * speed.ns_a_chunk * chunks_in_turn;
    const double ns = (1 - speed.states) * work + std::max(speed.states * work, states);
    const auto basis = times > 0 ? costdb::Basis::extrapolated : costdb::Basis::modelled;
    return {Duration{std::max<std::int64_t>(1, std::llround(ns))}, basis, error_percent};
}

}  // namespace pipeweaver::emulator
