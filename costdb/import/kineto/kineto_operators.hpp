// Which operator of the tables an event of a trace launched or is.
#pragma once

#include "pipeweaver/costdb/kinds.hpp"
#include "pipeweaver/costdb/trace.hpp"
#include "pipeweaver/costdb/trace_events.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace pipeweaver::costdb {

/// An operator at one shape; sizes that its class does not have are 0.
struct OperatorShape {
    OperatorClass which = OperatorClass::unknown;
    std::string why_not;  ///< why no table holds it; empty: one does
    Dtype dtype = Dtype::bf16;
    Pass pass = Pass::forward;
    CollectiveKind collective = CollectiveKind::all_reduce;
    bool causal = false;
    std::array<std::int64_t, 5> sizes{};  ///< GEMM m, n, k; attention batch, seq_len, q_heads, kv_heads, head_dim;
                                          ///< collective gpus, gpus per node, message bytes

    auto operator<=>(const OperatorShape&) const = default;
};

/// The operator that a cpu_op event is, if kernels that it launches can be told by it.
[[nodiscard]] std::optional<OperatorShape> operator_of(const TraceEvent& cpu_op, std::int64_t gpus_per_node);

/// The collective that a kernel's or record_param_comms' own arguments tell; nothing if they do not.
[[nodiscard]] std::optional<OperatorShape> collective_of(const TraceEvent& event, std::int64_t gpus_per_node);

}  // namespace pipeweaver::costdb
