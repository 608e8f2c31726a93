// The operators that have a cost: what each is asked by, and what an answer says. How answers come about: database.hpp.
//
// Units        Bytes are bytes, everything else counts. `op` is the operator's name in commands and files.
#pragma once

#include "pipeweaver/base/units.hpp"
#include "pipeweaver/costdb/kinds.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace pipeweaver::costdb {

/// What a database answers.
struct Cost {
    Duration duration{};  ///< >= 1 ns
    Basis basis = Basis::modelled;
    double error_percent = 0;
};

/// out[m,n] = a[m,k] b[k,n], `batch` times.
struct Gemm {
    static constexpr std::string_view op = "gemm";
    Dtype dtype = Dtype::bf16;
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t batch = 1;
    Pass pass = Pass::forward;
};

/// Flash attention over `batch` sequences of equal length. `pass` forward or backward.
struct Attention {
    static constexpr std::string_view op = "attention";
    Dtype dtype = Dtype::bf16;
    std::int64_t batch = 1, seq_len = 0, q_heads = 0, kv_heads = 0, head_dim = 0;
    bool causal = true;
    Pass pass = Pass::forward;
};

/// Sequences in one pass of an attention that does not cross them (block-diagonal).
struct PackedSequences {
    std::span<const std::int64_t> lengths;
    /// Cross attention: how many positions each attends to, of which causal ones are the last; empty: to itself.
    std::span<const std::int64_t> keys{};
    /// Most keys that a position sees; none: all.
    std::optional<std::int64_t> window{};
};

/// `message` is the whole tensor: the gathered output, the reduced input; of an all_to_all what one GPU holds.
struct Collective {
    static constexpr std::string_view op = "collective";
    CollectiveKind kind = CollectiveKind::all_reduce;
    Dtype dtype = Dtype::bf16;
    std::int64_t gpus = 0, gpus_per_node = 8;
    Bytes message;
    Bandwidth network{};    ///< of a node, between nodes; 0: of the machine that was measured
    Bandwidth node_link{};  ///< of a GPU, inside a node, one direction; 0: of the device's shipped cluster
};

/// One GPU to another. gpus_per_node 1: across nodes, 2 or more: inside a node.
struct PointToPoint {
    static constexpr std::string_view op = "p2p";
    std::int64_t gpus_per_node = 1;
    Bytes message;
    Bandwidth network{};    ///< that this transfer has between nodes; 0: of the machine that was measured
    Bandwidth node_link{};  ///< as Collective's
};

/// A fused mixture-of-experts layer, forward.
struct MixtureOfExperts {
    static constexpr std::string_view op = "moe";
    Dtype dtype = Dtype::bf16;
    std::int64_t tokens = 0, hidden = 0, ffn = 0, top_k = 0, experts = 0, moe_tp = 1, moe_ep = 1;
    std::string routing = "balanced";
};

/// An operator bound by memory traffic: norms, activations, residuals, casts. `pass` forward or backward.
struct Elementwise {
    static constexpr std::string_view op = "elementwise";
    Bytes traffic;  ///< read and written, in this pass
    ElementwiseKind kind = ElementwiseKind::other;
    Pass pass = Pass::forward;
};

/// A forward kernel of a gated delta net over `batch` sequences of equal length.
struct DeltaNet {
    static constexpr std::string_view op = "gdn";
    LinearKernel kernel = LinearKernel::chunk_gated_delta_rule_flashinfer;
    std::int64_t batch = 1, seq_len = 0, key_heads = 0, value_heads = 0;
    std::int64_t key_dim = 128, value_dim = 128;  ///< of a head
};

/// The batch of equal sequences that is asked for in place of these: of the same traffic and number of scores, as near
/// as whole numbers come. `shape.batch` and `shape.seq_len` are ignored. Throws Error{input} for no lengths, and for
/// causal keys that are fewer than the positions.
[[nodiscard]] Attention equal_batch(const Attention& shape, const PackedSequences& packed);

/// Any operator that has a cost.
using Query = std::variant<Gemm, Attention, Collective, PointToPoint, Elementwise, MixtureOfExperts>;

}  // namespace pipeweaver::costdb
