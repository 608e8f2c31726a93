// A line of a CSV table by column names, read strictly: what questions and measurements have in common.
#pragma once

#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/costdb/kinds.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pipeweaver::costdb {

/// A view of a row. Every accessor throws Error{input} "file:line: column: ..." for a missing column and a bad cell;
/// one with a default takes it where the column is missing or the cell empty.
class TableRow {
public:
    TableRow(const CsvTable& table, std::size_t row) : table_(table), row_(row) {}

    /// Whether the column is there and the cell not empty.
    bool is_given(std::string_view column) const;

    /// A whole number in [1, high].
    std::int64_t whole(std::string_view column, std::int64_t high) const;
    std::int64_t whole(std::string_view column, std::int64_t high, std::int64_t otherwise) const;

    /// A number in (0, high].
    double number(std::string_view column, double high) const;

    std::string_view text(std::string_view column) const;
    std::string_view text(std::string_view column, std::string_view otherwise) const;

    /// 1, 0, true or false.
    bool flag(std::string_view column) const;

    /// The place among `names`.
    std::size_t choice(std::string_view column, std::span<const std::string> names,
                       std::string_view otherwise = {}) const;

    Dtype dtype(std::string_view otherwise = {}) const;

    [[noreturn]] void fail(std::string_view column, std::string_view message) const;

private:
    const CsvTable& table_;
    std::size_t row_;
};

}  // namespace pipeweaver::costdb
