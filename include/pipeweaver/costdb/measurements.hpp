// The measured points of one device, as plain arrays: what a cost database answers from.
//
// Take them from a database (CostDatabase::measurements), leave some out, and build another with
// CostDatabase::from: that is how errors are estimated.
//
// Units        latencies are whole nanoseconds, messages bytes, everything else counts. `spread_permille` is half the
//              range that holds nine of ten repetitions, in thousandths of the latency; 0: not stated. `origin` is the
//              place of the point's table in Measurements::origins.
// Determinism  the order of points does not matter; equal keys are an error of the importer.
#pragma once

#include "pipeweaver/costdb/kinds.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::costdb {

/// out[m,n] = a[m,k] b[k,n], or the pass that belongs to that forward shape.
struct GemmPoint {
    Dtype dtype = Dtype::bf16;
    Pass pass = Pass::forward;
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t latency_ns = 0, spread_permille = 0, origin = 0;
};

struct AttentionPoint {
    Dtype dtype = Dtype::bf16;
    Pass pass = Pass::forward;
    std::int64_t batch = 0, seq_len = 0, q_heads = 0, kv_heads = 0, head_dim = 0;
    bool causal = true;
    std::int64_t latency_ns = 0, spread_permille = 0, origin = 0;
};

/// Where a point-to-point or collective time was taken.
enum class LinkSource : std::uint8_t {
    sweep,  ///< powers of two inside a node
    large,  ///< dense sweep of large all-reduces inside a node
    nodes   ///< dense sweep with GPUs per node given; noisy
};

struct CollectivePoint {
    LinkSource source = LinkSource::sweep;
    CollectiveKind kind = CollectiveKind::all_reduce;
    Dtype dtype = Dtype::fp16;
    std::int64_t gpus = 0, gpus_per_node = 8, message_bytes = 0;
    std::int64_t latency_ns = 0, spread_permille = 0, origin = 0;
};

struct PointToPointPoint {
    std::int64_t gpus_per_node = 1, message_bytes = 0;
    std::int64_t latency_ns = 0, spread_permille = 0, origin = 0;
};

struct MoePoint {
    Dtype dtype = Dtype::bf16;
    std::int64_t tokens = 0, hidden = 0, ffn = 0, top_k = 0, experts = 0, moe_tp = 0, moe_ep = 0;
    std::string routing;
    std::int64_t latency_ns = 0, spread_permille = 0, origin = 0;
};

/// A kernel, or the kernels of one operator together, bound by the memory traffic that it causes.
struct ElementwisePoint {
    ElementwiseKind kind = ElementwiseKind::other;
    Pass pass = Pass::forward;
    std::int64_t traffic_bytes = 0;
    std::int64_t latency_ns = 0, spread_permille = 0, origin = 0;
};

/// A forward kernel of a gated delta net over `batch` sequences of equal length.
struct LinearPoint {
    LinearKernel kernel = LinearKernel::causal_conv1d_fn;
    std::int64_t batch = 0, seq_len = 0, key_heads = 0, value_heads = 0, key_dim = 0, value_dim = 0;
    std::int64_t latency_ns = 0, spread_permille = 0, origin = 0;
};

/// A table that was imported.
struct MeasurementOrigin {
    std::string file, origin, licence, sha256;
    std::int64_t transferred_permille = 0;  ///< above 0: not measured, but carried over from another device; nine of
                                            ///< ten points that were measured lie within this many thousandths
};

/// How kernels in a step compare to kernels alone, fitted to measured steps of the device.
struct InSitu {
    std::int64_t compute_ppm = 1'000'000;     ///< millionths: on GEMM, attention and memory-bound kernels
    std::int64_t tp_exposed_ppm = 1'000'000;  ///< millionths of tensor-parallel communication that are not hidden
    std::string note;                         ///< what they were fitted to
};

/// How long passes through a module took in runs of a model, over what all else here says of them.
struct PassFactor {
    std::string model, module;
    bool backward = false;  ///< else its forward, also where it is recomputed
    std::int64_t factor_ppm = 1'000'000;
    std::int64_t steps = 0;  ///< that it was fitted on

    friend bool operator==(const PassFactor&, const PassFactor&) = default;
};

struct Measurements {
    std::string device;  ///< canonical name
    std::vector<GemmPoint> gemm;
    std::vector<AttentionPoint> attention;
    std::vector<CollectivePoint> collective;
    std::vector<PointToPointPoint> point_to_point;
    std::vector<MoePoint> moe;
    std::vector<ElementwisePoint> elementwise;
    std::vector<MeasurementOrigin> origins;
    std::optional<InSitu> in_situ;
    std::vector<PassFactor> pass_factors;  ///< by model, module and direction, each once
    std::string links_of;        ///< device whose point-to-point times these are, where it is another; else empty
    std::string collectives_of;  ///< the device whose collectives these are, where it is another; else empty
    std::vector<LinearPoint> linear;
};

/// Whether there is a point that a profiler's trace can give.
[[nodiscard]] inline bool has_points(const Measurements& one) {
    return !one.gemm.empty() || !one.attention.empty() || !one.collective.empty();
}

}  // namespace pipeweaver::costdb
