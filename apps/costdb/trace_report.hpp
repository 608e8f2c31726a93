// What a trace's kernels were taken for, as a table and as JSON.
#pragma once

#include "pipeweaver/costdb/trace.hpp"

#include <string>

namespace pipeweaver::apps {

/// Longest first; every kernel of the trace is in one of the rows.
void print_trace_report(const costdb::TraceReport& report);

/// The same as JSON, format pipeweaver-trace-report/1.
[[nodiscard]] std::string trace_report_json(const costdb::TraceReport& report);

}  // namespace pipeweaver::apps
