// Tables of cost queries: CSV in, the same CSV with three columns more out.
//
// Columns, defaults in brackets (a missing column or an empty cell takes the default; without one it is an error):
//   gemm        dtype,m,n,k,batch[1],pass[forward]
//   attention   dtype,batch,seq_len,q_heads,kv_heads,head_dim,causal,pass[forward]
//   collective  collective,dtype[bf16],gpus,gpus_per_node[8],message_bytes     (alltoall is all_to_all)
//   p2p         gpus_per_node,message_bytes
//   moe         dtype,tokens,hidden,ffn,top_k,experts,moe_tp,moe_ep,routing[balanced]
//   elementwise kind[other],pass[forward],traffic_bytes
//   gdn         kernel,batch,seq_len,k_heads,v_heads,k_head_dim[128],v_head_dim[128]
#pragma once

#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/costdb/database.hpp"

#include <span>
#include <string>
#include <string_view>

namespace pipeweaver::costdb {

/// "gemm", "attention", "collective", "p2p", "moe", "elementwise", "gdn".
[[nodiscard]] std::span<const std::string> query_operators();

/// The columns of `queries` and then latency_us (three decimals, the database's nanoseconds), basis, error_percent; one
/// row per query, in order. Throws Error{input} for an unknown operator or column, a missing column, an empty or
/// impossible cell: file:line: column: what is wrong, what is allowed.
[[nodiscard]] std::string answer_queries(const CostDatabase& database, std::string_view op, const CsvTable& queries);

}  // namespace pipeweaver::costdb
