#include "costdb/import/table_reader.hpp"

#include "costdb/import/table_row.hpp"
#include "costdb/store/provenance.hpp"
#include "costdb/tables/checks.hpp"
#include "costdb/tables/device_facts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace pipeweaver::costdb {

namespace {

constexpr double most_spread_percent = 1000;

/// A measured line.
class MeasuredRow : public TableRow {
public:
    using TableRow::TableRow;

    std::int64_t size(std::string_view column) const { return whole(column, largest_size); }
    std::int64_t message() const { return whole("message_bytes", largest_message); }
    std::int64_t latency_ns() const {
        return std::max<std::int64_t>(1, std::llround(1e3 * number("latency_us", longest_measured_us)));
    }
    std::int64_t spread_permille() const {
        return is_given("spread_percent") ? std::llround(10 * number("spread_percent", most_spread_percent)) : 0;
    }
    Pass pass() const { return static_cast<Pass>(choice("pass", pass_names(), "forward")); }
};

const std::array<std::string, 3> trained_passes{"forward", "backward_input", "backward_weight"};
const std::array<std::string, 2> attention_passes{"forward", "backward"};
const std::array<std::string, 5> collective_words{"all_gather", "reduce_scatter", "all_reduce", "alltoall",
                                                  "send_recv"};

void read_gemm(const MeasuredRow& row, Measurements& into) {
    const auto pass = row.pass();
    if (pass == Pass::backward)
        row.fail("pass", must_be("backward", "one of forward, backward_input, backward_weight"));
    into.gemm.push_back({.dtype = row.dtype(),
                         .pass = pass,
                         .m = row.size("m"),
                         .n = row.size("n"),
                         .k = row.size("k"),
                         .latency_ns = row.latency_ns(),
                         .spread_permille = row.spread_permille()});
}

void read_gemm_pass(const MeasuredRow& row, Measurements& into) {
    const auto which = row.choice("pass", trained_passes);
    const auto m = row.size("m"), n = row.size("n"), k = row.size("k");
    GemmPoint point{.dtype = row.dtype(), .m = m, .n = n, .k = k, .latency_ns = row.latency_ns()};
    const auto output = row.choice("out_dtype", dtype_names());
    if (row.size("batch") != 1) return;  // batched GEMMs are answered from single ones
    if (which == 1) {
        point = {point.dtype, Pass::backward_input, m, k, n, point.latency_ns};
    } else if (which == 2) {
        if (static_cast<Dtype>(output) != Dtype::fp32) return;
        point = {point.dtype, Pass::backward_weight, k, m, n, point.latency_ns};
    }
    into.gemm.push_back(point);
}

void read_attention(const MeasuredRow& row, Measurements& into) {
    const AttentionPoint point{.dtype = row.dtype(),
                               .pass = row.pass(),
                               .batch = row.size("batch"),
                               .seq_len = row.size("seq_len"),
                               .q_heads = row.size("q_heads"),
                               .kv_heads = row.size("kv_heads"),
                               .head_dim = row.size("head_dim"),
                               .causal = row.flag("causal"),
                               .latency_ns = row.latency_ns(),
                               .spread_permille = row.spread_permille()};
    if (point.pass != Pass::forward && point.pass != Pass::backward)
        row.fail("pass", must_be(name_of(point.pass), "one of forward, backward"));
    if (point.q_heads % point.kv_heads != 0) row.fail("kv_heads", "does not divide q_heads");
    into.attention.push_back(point);
}

void read_attention_pass(const MeasuredRow& row, Measurements& into) {
    const bool backward = row.choice("pass", attention_passes) == 1;
    constexpr double highest_fraction = 2;  // causal attention does half of the operations that are counted
    const double fraction = row.number("fraction_of_peak", highest_fraction);
    const bool contiguous = row.flag("qkv_contiguous");
    AttentionPoint point{.dtype = row.dtype(),
                         .pass = backward ? Pass::backward : Pass::forward,
                         .batch = row.size("batch"),
                         .seq_len = row.size("seq_len"),
                         .q_heads = row.size("q_heads"),
                         .kv_heads = row.size("kv_heads"),
                         .head_dim = row.size("qk_head_dim")};
    const auto value_dim = static_cast<double>(row.size("v_head_dim"));
    if (!contiguous) return;
    const double length = static_cast<double>(point.seq_len);
    const double operations = 2 * static_cast<double>(point.batch) * static_cast<double>(point.q_heads) * length *
                              length * (static_cast<double>(point.head_dim) + value_dim) * (backward ? 2.5 : 1);
    const double us = operations / (fraction * facts_of(into.device).peak(point.dtype));
    if (us > longest_measured_us) row.fail("fraction_of_peak", "gives a latency above an hour");
    point.latency_ns = std::max<std::int64_t>(1, std::llround(1e3 * us));
    into.attention.push_back(point);
}

CollectiveKind kind_of(std::size_t word) { return static_cast<CollectiveKind>(word); }
constexpr std::size_t send_recv = 4;

void read_collective(const MeasuredRow& row, Measurements& into) {
    const auto word = row.choice("collective", std::span(collective_words).first(send_recv));
    CollectivePoint point{.kind = kind_of(word), .dtype = row.dtype(), .gpus = row.size("gpus")};
    point.message_bytes = row.message();
    point.latency_ns = row.latency_ns();
    point.spread_permille = row.spread_permille();
    point.source = point.dtype == Dtype::fp32 ? LinkSource::large : LinkSource::sweep;
    into.collective.push_back(point);
}

void read_nodes(const MeasuredRow& row, Measurements& into) {
    const auto word = row.choice("collective", collective_words);
    const auto gpus = row.size("gpus"), gpus_per_node = row.size("gpus_per_node");
    if (word != send_recv) {
        into.collective.push_back(
            {LinkSource::nodes, kind_of(word), Dtype::fp16, gpus, gpus_per_node, row.message(), row.latency_ns()});
    } else {
        if (gpus != 2) row.fail("gpus", fmt::format("is {}, send_recv has 2", gpus));
        into.point_to_point.push_back({std::min<std::int64_t>(gpus_per_node, 2), row.message(), row.latency_ns()});
    }
}

void read_moe(const MeasuredRow& row, Measurements& into) {
    into.moe.push_back({.dtype = row.dtype(),
                        .tokens = row.size("tokens"),
                        .hidden = row.size("hidden"),
                        .ffn = row.size("ffn"),
                        .top_k = row.size("top_k"),
                        .experts = row.size("experts"),
                        .moe_tp = row.size("moe_tp"),
                        .moe_ep = row.size("moe_ep"),
                        .routing = std::string(row.text("routing")),
                        .latency_ns = row.latency_ns(),
                        .spread_permille = row.spread_permille()});
}

void read_elementwise(const MeasuredRow& row, Measurements& into) {
    into.elementwise.push_back({.kind = static_cast<ElementwiseKind>(row.choice("kind", elementwise_names())),
                                .pass = static_cast<Pass>(row.choice("pass", attention_passes)),
                                .traffic_bytes = row.whole("traffic_bytes", largest_message),
                                .latency_ns = row.latency_ns(),
                                .spread_permille = row.spread_permille()});
}

void read_linear(const MeasuredRow& row, Measurements& into) {
    if (row.dtype() != Dtype::bf16) row.fail("dtype", must_be(name_of(row.dtype()), name_of(Dtype::bf16)));
    into.linear.push_back({.kernel = static_cast<LinearKernel>(row.choice("kernel", linear_kernel_names())),
                           .batch = row.size("batch"),
                           .seq_len = row.size("seq_len"),
                           .key_heads = row.size("k_heads"),
                           .value_heads = row.size("v_heads"),
                           .key_dim = row.size("k_head_dim"),
                           .value_dim = row.size("v_head_dim"),
                           .latency_ns = row.latency_ns(),
                           .spread_permille = row.spread_permille()});
}

struct Kind {
    std::vector<std::string> columns;
    void (*read)(const MeasuredRow&, Measurements&);
    std::vector<std::string> optional = {"spread_percent"};

    bool knows(const std::string& column) const {
        const auto has = [&](const auto& names) {
            return std::find(names.begin(), names.end(), column) != names.end();
        };
        return has(columns) || has(optional) || has(provenance_columns);
    }
};

const std::array<Kind, 9>& kinds() {
    static const std::array<Kind, 9> all{{
        {{"dtype", "m", "n", "k", "latency_us"}, read_gemm, {"pass", "spread_percent"}},
        {{"dtype", "batch", "m", "n", "k", "layout", "pass", "accumulate", "out_dtype", "fraction_of_peak",
          "latency_us"},
         read_gemm_pass,
         {}},
        {{"dtype", "batch", "seq_len", "q_heads", "kv_heads", "head_dim", "causal", "latency_us"},
         read_attention,
         {"pass", "spread_percent"}},
        {{"pass", "dtype", "batch", "seq_len", "q_heads", "kv_heads", "qk_head_dim", "v_head_dim", "qkv_contiguous",
          "fraction_of_peak"},
         read_attention_pass,
         {}},
        {{"collective", "dtype", "gpus", "message_bytes", "latency_us"}, read_collective},
        {{"collective", "gpus", "gpus_per_node", "message_bytes", "latency_us"}, read_nodes, {}},
        {{"dtype", "tokens", "hidden", "ffn", "top_k", "experts", "moe_tp", "moe_ep", "routing", "latency_us"},
         read_moe},
        {{"kind", "pass", "traffic_bytes", "latency_us"}, read_elementwise},
        {{"kernel", "dtype", "batch", "seq_len", "k_heads", "k_head_dim", "v_heads", "v_head_dim", "latency_us"},
         read_linear,
         {"hidden", "conv_width", "spread_percent"}},
    }};
    return all;
}

std::size_t shared_columns(const CsvTable& table, const Kind& kind) {
    return static_cast<std::size_t>(std::count_if(kind.columns.begin(), kind.columns.end(),
                                                  [&](const auto& c) { return table.find(c).has_value(); }));
}

/// " (is 'latency' it?)" if a column that the kind does not know has a name like `column`.
std::string renamed(const CsvTable& table, const Kind& kind, std::string_view column) {
    std::vector<std::string> strange;
    for (const auto& other : table.columns())
        if (!kind.knows(other)) strange.push_back(other);
    const auto found = nearest(column, strange);
    return found ? fmt::format(" (is '{}' it?)", *found) : "";
}

/// The kind whose columns the table has; else an error that names what the most similar kind lacks or does not know.
const Kind& kind_of(const CsvTable& table) {
    const auto unlike = [&](const Kind& kind) {
        const auto strange = std::count_if(table.columns().begin(), table.columns().end(),
                                           [&](const auto& column) { return !kind.knows(column); });
        return kind.columns.size() - shared_columns(table, kind) + static_cast<std::size_t>(strange);
    };
    const auto& nearest_kind = *std::min_element(kinds().begin(), kinds().end(),
                                                 [&](const auto& a, const auto& b) { return unlike(a) < unlike(b); });
    for (const auto& column : nearest_kind.columns)
        if (!table.find(column))
            fail(ErrorKind::input, "{}:1: column '{}' is missing{}; tables like this have {}", table.name(), column,
                 renamed(table, nearest_kind, column), fmt::join(nearest_kind.columns, ","));
    for (const auto& column : table.columns())
        if (!nearest_kind.knows(column))
            fail(ErrorKind::input, "{}:1: {}", table.name(), unknown("column", column, nearest_kind.columns));
    return nearest_kind;
}

}  // namespace

void read_points(const CsvTable& table, Measurements& into) {
    const auto& kind = kind_of(table);
    if (table.rows() == 0) fail(ErrorKind::input, "{}: has no rows", table.name());
    Provenance provenance(table, into);
    for (std::size_t row = 0; row < table.rows(); ++row) {
        kind.read(MeasuredRow(table, row), into);
        provenance.stamp(row);
    }
}

}  // namespace pipeweaver::costdb
