#include "pipeweaver/costdb/query.hpp"

#include "costdb/import/table_row.hpp"
#include "costdb/tables/checks.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <algorithm>
#include <array>

namespace pipeweaver::costdb {

namespace {

constexpr std::array<std::string_view, 3> answer_columns{"latency_us", "basis", "error_percent"};

/// A query's line. Of the sizes none is larger than a message may be: what no table holds is extrapolated.
class QueryRow : public TableRow {
public:
    using TableRow::TableRow;

    std::int64_t whole(std::string_view column) const { return TableRow::whole(column, largest_message); }
    std::int64_t whole(std::string_view column, std::int64_t otherwise) const {
        return TableRow::whole(column, largest_message, otherwise);
    }
    Pass pass() const { return static_cast<Pass>(choice("pass", pass_names(), "forward")); }
    CollectiveKind collective() const {
        if (text("collective") == "alltoall") return CollectiveKind::all_to_all;  // as the measured tables spell it
        return static_cast<CollectiveKind>(choice("collective", collective_names()));
    }
};

Cost ask_gemm(const CostDatabase& database, const QueryRow& row) {
    return database.cost(Gemm{.dtype = row.dtype(),
                              .m = row.whole("m"),
                              .n = row.whole("n"),
                              .k = row.whole("k"),
                              .batch = row.whole("batch", 1),
                              .pass = row.pass()});
}

Cost ask_attention(const CostDatabase& database, const QueryRow& row) {
    return database.cost(Attention{.dtype = row.dtype(),
                                   .batch = row.whole("batch"),
                                   .seq_len = row.whole("seq_len"),
                                   .q_heads = row.whole("q_heads"),
                                   .kv_heads = row.whole("kv_heads"),
                                   .head_dim = row.whole("head_dim"),
                                   .causal = row.flag("causal"),
                                   .pass = row.pass()});
}

Cost ask_collective(const CostDatabase& database, const QueryRow& row) {
    return database.cost(Collective{.kind = row.collective(),
                                    .dtype = row.dtype("bf16"),
                                    .gpus = row.whole("gpus"),
                                    .gpus_per_node = row.whole("gpus_per_node", 8),
                                    .message = Bytes{row.whole("message_bytes")}});
}

Cost ask_transfer(const CostDatabase& database, const QueryRow& row) {
    return database.cost(
        PointToPoint{.gpus_per_node = row.whole("gpus_per_node"), .message = Bytes{row.whole("message_bytes")}});
}

Cost ask_moe(const CostDatabase& database, const QueryRow& row) {
    return database.cost(MixtureOfExperts{.dtype = row.dtype(),
                                          .tokens = row.whole("tokens"),
                                          .hidden = row.whole("hidden"),
                                          .ffn = row.whole("ffn"),
                                          .top_k = row.whole("top_k"),
                                          .experts = row.whole("experts"),
                                          .moe_tp = row.whole("moe_tp"),
                                          .moe_ep = row.whole("moe_ep"),
                                          .routing = std::string(row.text("routing", "balanced"))});
}

Cost ask_elementwise(const CostDatabase& database, const QueryRow& row) {
    return database.cost(
        Elementwise{.traffic = Bytes{row.whole("traffic_bytes")},
                    .kind = static_cast<ElementwiseKind>(row.choice("kind", elementwise_names(), "other")),
                    .pass = row.pass()});
}

Cost ask_linear(const CostDatabase& database, const QueryRow& row) {
    return database.cost(DeltaNet{.kernel = static_cast<LinearKernel>(row.choice("kernel", linear_kernel_names())),
                                  .batch = row.whole("batch"),
                                  .seq_len = row.whole("seq_len"),
                                  .key_heads = row.whole("k_heads"),
                                  .value_heads = row.whole("v_heads"),
                                  .key_dim = row.whole("k_head_dim", 128),
                                  .value_dim = row.whole("v_head_dim", 128)});
}

struct Operator {
    std::vector<std::string> needed, optional;
    Cost (*ask)(const CostDatabase&, const QueryRow&);
};

const std::array<std::string, 7> operator_names{"gemm", "attention", "collective", "p2p", "moe", "elementwise", "gdn"};

const std::array<Operator, 7>& operators() {  // in the order of operator_names
    static const std::array<Operator, 7> all{{
        {{"dtype", "m", "n", "k"}, {"batch", "pass"}, ask_gemm},
        {{"dtype", "batch", "seq_len", "q_heads", "kv_heads", "head_dim", "causal"}, {"pass"}, ask_attention},
        {{"collective", "gpus", "message_bytes"}, {"dtype", "gpus_per_node"}, ask_collective},
        {{"gpus_per_node", "message_bytes"}, {}, ask_transfer},
        {{"dtype", "tokens", "hidden", "ffn", "top_k", "experts", "moe_tp", "moe_ep"}, {"routing"}, ask_moe},
        {{"traffic_bytes"}, {"kind", "pass"}, ask_elementwise},
        {{"kernel", "batch", "seq_len", "k_heads", "v_heads"}, {"k_head_dim", "v_head_dim"}, ask_linear},
    }};
    return all;
}

void check_columns(const Operator& op, const CsvTable& queries) {
    std::vector<std::string> known = op.needed;
    known.insert(known.end(), op.optional.begin(), op.optional.end());
    for (const auto& column : queries.columns()) {
        if (std::find(answer_columns.begin(), answer_columns.end(), column) != answer_columns.end())
            fail(ErrorKind::input, "{}:1: column '{}' is one of the answer's", queries.name(), column);
        if (std::find(known.begin(), known.end(), column) == known.end())
            fail(ErrorKind::input, "{}:1: {}", queries.name(), unknown("column", column, known));
    }
    for (const auto& column : op.needed) static_cast<void>(queries.column(column));
}

/// An error of the database ("m: is 0, ...") at its place in the table.
[[noreturn]] void fail_in_row(const CsvTable& queries, std::size_t row, const Error& error) {
    const std::string_view what = error.what();
    if (what.starts_with(queries.name())) throw error;
    const auto colon = what.find(": ");
    const auto column = colon == std::string_view::npos ? std::nullopt : queries.find(what.substr(0, colon));
    if (column) queries.fail_at(row, *column, what.substr(colon + 2));
    const auto quoted = what.starts_with("unknown routing") ? queries.find("routing") : std::nullopt;
    queries.fail_at(row, quoted ? *quoted : 0, what);
}

}  // namespace

std::span<const std::string> query_operators() { return operator_names; }

std::string answer_queries(const CostDatabase& database, std::string_view op, const CsvTable& queries) {
    const auto& asked = operators()[index_of("operator", op, operator_names)];
    check_columns(asked, queries);
    std::string out;
    for (const auto& column : queries.columns()) out += csv_cell(column) + ',';
    out += "latency_us,basis,error_percent\n";
    for (std::size_t row = 0; row < queries.rows(); ++row) {
        try {
            const auto cost = asked.ask(database, QueryRow(queries, row));
            for (std::size_t c = 0; c < queries.columns().size(); ++c) out += csv_cell(queries.text(row, c)) + ',';
            const auto ns = cost.duration.count();
            out += fmt::format("{}.{:03},{},{:.1f}\n", ns / 1000, ns % 1000, name_of(cost.basis), cost.error_percent);
        } catch (const Error& error) {
            fail_in_row(queries, row, error);
        }
    }
    return out;
}

}  // namespace pipeweaver::costdb
