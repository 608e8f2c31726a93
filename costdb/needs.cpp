#include "pipeweaver/costdb/needs.hpp"

#include "costdb/import/table_row.hpp"
#include "costdb/tables/checks.hpp"
#include "costdb/tables/device_facts.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/costdb/leave_out.hpp"

#include <array>
#include <map>
#include <tuple>

namespace pipeweaver::costdb {

namespace {

constexpr double most_times = 1e15;

void check_columns(const CsvTable& table) {
    static const std::array<std::string, 10> known{
        "dtype", "m", "n", "k", "pass", "batch", "times", "share_percent", "estimate_us", "basis"};
    for (const auto& column : table.columns())
        if (std::find(known.begin(), known.end(), column) == known.end())
            fail(ErrorKind::input, "{}:1: {}", table.name(), unknown("column", column, known));
    if (table.rows() == 0) fail(ErrorKind::input, "{}: has no rows", table.name());
}

}  // namespace

std::vector<NeededGemm> needed_gemms(const CsvTable& table) {
    check_columns(table);
    std::map<std::tuple<Dtype, std::int64_t, std::int64_t, std::int64_t>, double> times;
    for (std::size_t i = 0; i < table.rows(); ++i) {
        const TableRow row(table, i);
        const auto m = row.whole("m", largest_size), batch = row.whole("batch", largest_size, 1);
        if (batch > largest_size / m) row.fail("batch", "times m is above 2^32");
        static_cast<void>(row.choice("pass", pass_names(), "forward"));
        const double count = row.is_given("times") ? row.number("times", most_times) : 1;
        times[{row.dtype(), batch * m, row.whole("n", largest_size), row.whole("k", largest_size)}] += count;
    }
    std::vector<NeededGemm> needs;
    for (const auto& [shape, count] : times) {
        const auto& [dtype, m, n, k] = shape;
        needs.push_back({{.dtype = dtype, .m = m, .n = n, .k = k}, count});
    }
    return needs;
}

std::vector<NeededGemm> big_gemms(const CostDatabase& database, std::string_view device) {
    const bool has_fp8 = facts_of(device).fp8_flops_per_us > 0;
    std::vector<NeededGemm> needs;
    for (const auto& p : database.measurements().gemm)
        if (p.pass == Pass::forward && is_big(p) && (has_fp8 || p.dtype != Dtype::fp8)) needs.push_back({query_of(p)});
    return needs;
}

std::string shapes_csv(std::span<const Gemm> shapes) {
    std::string csv = "dtype,m,n,k,pass\n";
    for (const auto& g : shapes)
        csv += fmt::format("{},{},{},{},{}\n", name_of(g.dtype), g.batch * g.m, g.n, g.k, name_of(g.pass));
    return csv;
}

}  // namespace pipeweaver::costdb
