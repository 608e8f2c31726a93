// What operators cost: measured latencies, interpolated by documented methods, each answer with its basis and error.
//
// Units        Duration is whole nanoseconds, rounded once, here. Errors are percent of the answer (one standard
// deviation
//              of ln(answer / truth), times 100).
// Threads      a CostDatabase is immutable; any number of threads may ask it.
// Determinism  equal database and query give equal answers.
#pragma once

#include "pipeweaver/base/units.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::costdb {

/// Where an answer comes from, best first.
enum class Basis : std::uint8_t { exact, interpolated, extrapolated, modelled };
[[nodiscard]] std::string_view name_of(Basis basis);

struct Cost {
    Duration duration{};  ///< >= 1 ns
    Basis basis = Basis::modelled;
    double error_percent = 0;
};

enum class Dtype : std::uint8_t { bf16, fp8, fp16, fp32, int8 };
[[nodiscard]] std::string_view name_of(Dtype dtype);
[[nodiscard]] std::int64_t size_of(Dtype dtype);  ///< bytes of one element

/// Which pass of an operator. For a GEMM out[m,n] = a[m,k] b[k,n]: `backward` is input and weight gradient together.
enum class Pass : std::uint8_t { forward, backward, backward_input, backward_weight };

/// out[m,n] = a[m,k] b[k,n], `batch` times.
struct Gemm {
    Dtype dtype = Dtype::bf16;
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t batch = 1;
    Pass pass = Pass::forward;
};

/// Flash attention over `batch` sequences of equal length. `pass` forward or backward.
struct Attention {
    Dtype dtype = Dtype::bf16;
    std::int64_t batch = 1, seq_len = 0, q_heads = 0, kv_heads = 0, head_dim = 0;
    bool causal = true;
    Pass pass = Pass::forward;
};

enum class CollectiveKind : std::uint8_t { all_gather, reduce_scatter, all_reduce, all_to_all };

/// `message` is the whole tensor: the gathered output, the reduced input.
struct Collective {
    CollectiveKind kind = CollectiveKind::all_reduce;
    Dtype dtype = Dtype::bf16;
    std::int64_t gpus = 0, gpus_per_node = 8;
    Bytes message;
};

/// One GPU to another. gpus_per_node 1: across nodes, 2 or more: inside a node.
struct PointToPoint {
    std::int64_t gpus_per_node = 1;
    Bytes message;
};

/// A fused mixture-of-experts layer, forward.
struct MixtureOfExperts {
    Dtype dtype = Dtype::bf16;
    std::int64_t tokens = 0, hidden = 0, ffn = 0, top_k = 0, experts = 0, moe_tp = 1, moe_ep = 1;
    std::string routing = "balanced";
};

/// An operator bound by memory traffic: norms, activations, residuals, casts.
struct Elementwise {
    Bytes traffic;  ///< read and written
};

/// Costs of one device.
class CostDatabase {
public:
    /// The tables that ship with the program. `device` is a canonical name or an alias of workloads::devices().
    /// Throws Error{input} for an unknown device. A known device without tables answers by model.
    [[nodiscard]] static CostDatabase embedded(std::string_view device);

    /// Reads a database file. Throws Error{input} (damaged, newer version, device not in it), Error{io}.
    [[nodiscard]] static CostDatabase read(const std::filesystem::path& path, std::string_view device);

    CostDatabase(CostDatabase&&) noexcept;
    CostDatabase& operator=(CostDatabase&&) noexcept;
    ~CostDatabase();

    const std::string& device() const;

    // Each throws Error{input} for sizes below 1 and for what can have no cost (a pass that the operator lacks).
    [[nodiscard]] Cost cost(const Gemm& query) const;
    [[nodiscard]] Cost cost(const Attention& query) const;
    [[nodiscard]] Cost cost(const Collective& query) const;
    [[nodiscard]] Cost cost(const PointToPoint& query) const;
    [[nodiscard]] Cost cost(const MixtureOfExperts& query) const;
    [[nodiscard]] Cost cost(const Elementwise& query) const;

    /// Attention over packed sequences of different lengths (block-diagonal). `shape.batch` and `shape.seq_len` are
    /// ignored. Asks for the batch of equal sequences with the same sum of lengths and of squares, and scales by the
    /// squares; equal lengths give exactly the answer of the padded query.
    [[nodiscard]] Cost packed_attention(const Attention& shape, std::span<const std::int64_t> lengths) const;

private:
    struct Tables;
    explicit CostDatabase(std::unique_ptr<const Tables> tables);
    std::unique_ptr<const Tables> tables_;
};

}  // namespace pipeweaver::costdb
