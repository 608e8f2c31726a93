// Layers as operators: which GEMMs, attentions, collectives and memory-bound kernels a pass of a layer launches.
//
// Notation     h hidden, F ffn, a heads, k kv_heads, d head_dim, V vocab, t tensor parallel GPUs, m positions of the
// pass. Source       Megatron-LM's dense transformer layer with tensor and sequence parallelism; the traffic of its
// memory-bound
//              kernels as fitted to published H100 runs: forward 20 m h/t + 4 m (a+k) d/t + 2 m (F1+F)/t bytes, F1 = 2F
//              if gated, else F; backward 1.6 times that.
#pragma once

#include "pipeweaver/costdb/database.hpp"
#include "pipeweaver/emulator/layout.hpp"

#include <array>
#include <string>
#include <variant>
#include <vector>

namespace pipeweaver::emulator {

/// Flash attention over packed sequences; `shape.batch` and `shape.seq_len` are not used.
struct PackedAttention {
    costdb::Attention shape;
    std::vector<std::int64_t> lengths;
};

enum class OperatorClass : std::uint8_t { gemm, attention, collective, point_to_point, elementwise };
constexpr std::size_t operator_classes = 5;
[[nodiscard]] std::string_view name_of(OperatorClass kind);

struct Operator {
    std::string_view name;  ///< "qkv", "attention", ...; a literal
    std::variant<costdb::Gemm, PackedAttention, costdb::Collective, costdb::PointToPoint, costdb::Elementwise> query;

    OperatorClass kind() const { return static_cast<OperatorClass>(query.index()); }
};

/// Which part of a training step a pass is. `backward` is input and weight gradient together.
enum class PassKind : std::uint8_t { forward, backward, input_gradient, weight_gradient };

/// What a pass of a module works on.
struct PassShape {
    std::vector<std::int64_t> lengths;  ///< packed sequences; attention does not cross them

    std::int64_t positions() const;  ///< sum of lengths
};

/// One repeated block. Pre: the architecture is a dense language model or vision encoder (see `unsupported`).
[[nodiscard]] std::vector<Operator> layer_operators(const workloads::Architecture& network, const PassShape& shape,
                                                    const Layout& layout, PassKind pass);

/// Token embedding: a gather, and the scatter of its sums over tensor parallel ranks.
[[nodiscard]] std::vector<Operator> embedding_operators(const workloads::Architecture& network, const PassShape& shape,
                                                        const Layout& layout, PassKind pass);

/// Output head with vocabulary-parallel cross entropy.
[[nodiscard]] std::vector<Operator> head_operators(const workloads::Architecture& network, const PassShape& shape,
                                                   const Layout& layout, PassKind pass);

/// Linear projector between modules: `positions` outputs of width `out` from inputs of width `in`.
[[nodiscard]] std::vector<Operator> projector_operators(std::int64_t positions, std::int64_t in, std::int64_t out,
                                                        const Layout& layout, PassKind pass);

/// Why this version cannot emulate a network, or an empty text.
[[nodiscard]] std::string unsupported(const workloads::Architecture& network);

}  // namespace pipeweaver::emulator
