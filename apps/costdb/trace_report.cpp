#include "apps/costdb/trace_report.hpp"

#include "apps/console.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipeweaver::apps {

namespace {

/// Cut to `width` bytes, never inside a letter of several.
std::string cut(const std::string& name, std::size_t width) {
    if (name.size() <= width) return name;
    auto end = width - 3;
    while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
    return name.substr(0, end) + "...";
}

double milliseconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

std::size_t points_of(const costdb::TraceReport& report) {
    return report.points.gemm.size() + report.points.attention.size() + report.points.collective.size();
}

nlohmann::ordered_json row_json(const costdb::KernelRow& row) {
    nlohmann::ordered_json json{{"name", row.name},
                                {"kind", row.is_copy ? "copy" : "kernel"},
                                {"operator", name_of(row.which)},
                                {"mapped", row.why_not.empty()},
                                {"why_not", nullptr},
                                {"count", row.count},
                                {"total_ns", row.total_ns}};
    if (!row.why_not.empty()) json["why_not"] = row.why_not;
    return json;
}

}  // namespace

void print_trace_report(const costdb::TraceReport& report) {
    print_text("{:>12} {:>9}  {:<12}  {:<6}  {}\n", "total ms", "count", "operator", "mapped", "kernel");
    for (const auto& row : report.rows) {
        print_text("{:>12.3f} {:>9}  {:<12}  {:<6}  {}\n", milliseconds(row.total_ns), row.count, name_of(row.which),
                   row.why_not.empty() ? "yes" : "no", cut(row.name, 90));
        if (!row.why_not.empty()) print_text("{:>46}{}\n", "", row.why_not);
    }
    print_text("\n{:>12.3f} {:>9}  kernels\n{:>12.3f} {:>9}  copies\n{:>12.3f} {:>9}  of these mapped, to {} points\n",
               milliseconds(report.kernels_ns), report.kernels, milliseconds(report.copies_ns), report.copies,
               milliseconds(report.mapped_ns), report.mapped, points_of(report));
    print_text("{} events on '{}', the file read {} times\n", report.events,
               report.product.empty() ? "(no device stated)" : report.product, report.readings);
}

std::string trace_report_json(const costdb::TraceReport& report) {
    nlohmann::ordered_json json{{"format", "pipeweaver-trace-report/1"},
                                {"device", report.product},
                                {"sha256", report.sha256},
                                {"events", report.events},
                                {"kernels", report.kernels},
                                {"kernels_ns", report.kernels_ns},
                                {"copies", report.copies},
                                {"copies_ns", report.copies_ns},
                                {"mapped", report.mapped},
                                {"mapped_ns", report.mapped_ns},
                                {"points", points_of(report)},
                                {"rows", nlohmann::ordered_json::array()}};
    for (const auto& row : report.rows) json["rows"].push_back(row_json(row));
    return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace pipeweaver::apps
