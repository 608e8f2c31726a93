// What the kernels of a trace add up to: rows of the report, and repetitions of operators at their shapes.
#pragma once

#include "costdb/import/kineto/kineto_operators.hpp"
#include "costdb/import/repetitions.hpp"
#include "pipeweaver/costdb/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace pipeweaver::costdb {

/// A kernel or copy, as far as the report is concerned.
struct DeviceWork {
    bool is_copy = false;
    std::int64_t start_ns = 0, duration_ns = 0;
};

/// Adds to a report, which must outlive it. `file` is for errors.
class TraceTally {
public:
    TraceTally(std::string file, TraceReport& report) : file_(std::move(file)), report_(report) {}

    /// Number of a shape, the same for equal ones. Throws Error{limit} for too many.
    std::uint32_t number_of(const OperatorShape& shape);
    const OperatorShape& shape(std::uint32_t number) const { return *shapes_[number]; }

    /// The operator of that number took so long once more.
    void repeat(std::uint32_t number, std::int64_t ns) { repetitions_[number].add(ns); }

    /// Number of a row. Throws Error{limit} for too many.
    std::size_t row(const std::string& name, bool is_copy, OperatorClass which, std::string_view why_not);

    /// Counts work in a row, or with `times` -1 no longer.
    void count(std::size_t row, const DeviceWork& work, std::int64_t times);

    /// Turns repetitions into the report's points.
    void make_points();

private:
    void make_point(const OperatorShape& shape, const Repetitions& times);

    std::string file_;
    TraceReport& report_;
    std::map<OperatorShape, std::uint32_t> numbers_;
    std::vector<const OperatorShape*> shapes_;  // by number
    std::vector<Repetitions> repetitions_;      // by number
    std::map<std::tuple<std::string, bool, OperatorClass, std::string>, std::size_t> rows_;
};

}  // namespace pipeweaver::costdb
