#include "pipeweaver/costdb/export.hpp"

#include "pipeweaver/base/csv.hpp"

#include <fmt/format.h>

#include <array>

namespace pipeweaver::costdb {

namespace {

const std::array<std::string, 7> table_names{"gemm", "attention", "collective", "nodes", "moe", "elementwise", "gdn"};

std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string spread(std::int64_t permille) {
    return permille == 0 ? "" : fmt::format("{}.{}", permille / 10, permille % 10);
}

/// As import spells it in tables of collectives.
std::string_view word_of(CollectiveKind kind) {
    return kind == CollectiveKind::all_to_all ? "alltoall" : name_of(kind);
}

std::string line_of(const GemmPoint& p) {
    return fmt::format("{},{},{},{},{},{},{}", name_of(p.dtype), p.m, p.n, p.k, name_of(p.pass),
                       microseconds(p.latency_ns), spread(p.spread_permille));
}

std::string line_of(const AttentionPoint& p) {
    return fmt::format("{},{},{},{},{},{},{},{},{},{}", name_of(p.dtype), p.batch, p.seq_len, p.q_heads, p.kv_heads,
                       p.head_dim, p.causal ? 1 : 0, name_of(p.pass), microseconds(p.latency_ns),
                       spread(p.spread_permille));
}

std::string line_of(const CollectivePoint& p) {
    if (p.source == LinkSource::nodes)
        return fmt::format("{},{},{},{},{}", word_of(p.kind), p.gpus, p.gpus_per_node, p.message_bytes,
                           microseconds(p.latency_ns));
    return fmt::format("{},{},{},{},{},{}", word_of(p.kind), name_of(p.dtype), p.gpus, p.message_bytes,
                       microseconds(p.latency_ns), spread(p.spread_permille));
}

std::string line_of(const PointToPointPoint& p) {
    return fmt::format("send_recv,2,{},{},{}", p.gpus_per_node, p.message_bytes, microseconds(p.latency_ns));
}

std::string line_of(const MoePoint& p) {
    return fmt::format("{},{},{},{},{},{},{},{},{},{},{}", name_of(p.dtype), p.tokens, p.hidden, p.ffn, p.top_k,
                       p.experts, p.moe_tp, p.moe_ep, csv_cell(p.routing), microseconds(p.latency_ns),
                       spread(p.spread_permille));
}

std::string line_of(const ElementwisePoint& p) {
    return fmt::format("{},{},{},{},{}", name_of(p.kind), name_of(p.pass), p.traffic_bytes, microseconds(p.latency_ns),
                       spread(p.spread_permille));
}

std::string line_of(const LinearPoint& p) {
    return fmt::format("{},bf16,{},{},{},{},{},{},{},{}", name_of(p.kernel), p.batch, p.seq_len, p.key_heads, p.key_dim,
                       p.value_heads, p.value_dim, microseconds(p.latency_ns), spread(p.spread_permille));
}

/// Collects the lines of a table.
class Writer {
public:
    Writer(const Measurements& from, const char* columns) : from_(from) {
        result_.csv = fmt::format("{},source,origin,licence\n", columns);
    }

    template <class Point, class F>
    void add(const std::vector<Point>& points, F wanted) {
        for (const auto& p : points) {
            if (!wanted(p)) continue;
            const auto at = static_cast<std::size_t>(p.origin);
            const auto origin = at < from_.origins.size() ? from_.origins[at] : MeasurementOrigin{};
            if (origin.transferred_permille > 0) {
                ++result_.left_out;
                continue;
            }
            ++result_.points;
            result_.csv += fmt::format("{},{},{},{}\n", line_of(p), csv_cell(origin.file), csv_cell(origin.origin),
                                       csv_cell(origin.licence));
        }
    }

    Exported result() && { return std::move(result_); }

private:
    const Measurements& from_;
    Exported result_;
};

constexpr auto every_point = [](const auto&) { return true; };
constexpr auto of_nodes = [](const CollectivePoint& p) { return p.source == LinkSource::nodes; };
constexpr auto of_a_node = [](const CollectivePoint& p) { return p.source != LinkSource::nodes; };

constexpr std::array<const char*, 7> exported_columns{
    "dtype,m,n,k,pass,latency_us,spread_percent",
    "dtype,batch,seq_len,q_heads,kv_heads,head_dim,causal,pass,latency_us,spread_percent",
    "collective,dtype,gpus,message_bytes,latency_us,spread_percent",
    "collective,gpus,gpus_per_node,message_bytes,latency_us",
    "dtype,tokens,hidden,ffn,top_k,experts,moe_tp,moe_ep,routing,latency_us,spread_percent",
    "kind,pass,traffic_bytes,latency_us,spread_percent",
    "kernel,dtype,batch,seq_len,k_heads,k_head_dim,v_heads,v_head_dim,latency_us,spread_percent"};

}  // namespace

std::span<const std::string> exported_tables() { return table_names; }

Exported export_table(const Measurements& points, const std::string& table) {
    const auto which = index_of("table", table, table_names);
    Writer writer(points, exported_columns[which]);
    if (which == 0) writer.add(points.gemm, every_point);
    if (which == 1) writer.add(points.attention, every_point);
    const bool own_collectives = points.collectives_of.empty();
    if (which == 2 && own_collectives) writer.add(points.collective, of_a_node);
    if (which == 3) {
        if (own_collectives) writer.add(points.collective, of_nodes);
        if (points.links_of.empty()) writer.add(points.point_to_point, every_point);
    }
    if (which == 4) writer.add(points.moe, every_point);
    if (which == 5) writer.add(points.elementwise, every_point);
    if (which == 6) writer.add(points.linear, every_point);
    return std::move(writer).result();
}

}  // namespace pipeweaver::costdb
