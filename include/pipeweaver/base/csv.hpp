// Comma-separated tables with a header line, read strictly: a cell knows its file, line and column, for errors such as
// "gemm.csv:17: latency_us: is '-3', must be a number above 0 and up to 3.6e+09".
//
// Ownership    texts are views into the table, which must outlive them.
// Threads      any number of readers at once.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver {

/// A parsed table. Cells may be quoted ("a ""b"", c"); lines end in LF or CRLF; empty lines only at the end.
class CsvTable {
public:
    /// Parses `text`. Throws Error{input} for a missing header, an empty or repeated column name, a line with more or
    /// fewer cells than the header, an open quote and a NUL byte.
    CsvTable(std::string name, std::string text);

    /// Reads and parses a file, gzip allowed. Throws as read_file() and the constructor do.
    static CsvTable read(const std::filesystem::path& path);

    const std::string& name() const { return name_; }
    std::span<const std::string> columns() const { return columns_; }
    std::size_t rows() const { return lines_.size(); }

    /// The line of the file where the row begins, from 1. Pre: row < rows()
    std::size_t line(std::size_t row) const { return static_cast<std::size_t>(lines_[row]); }

    std::optional<std::size_t> find(std::string_view column) const;  ///< its index, or nothing
    std::size_t column(std::string_view column) const;               ///< its index. Throws Error{input} if missing

    /// The cell, without surrounding blanks. Pre: row < rows(), column < columns().size()
    std::string_view text(std::size_t row, std::size_t column) const { return cells_[row * columns_.size() + column]; }

    /// The cell as a whole number in [low, high]. Throws Error{input}, also for an empty cell.
    std::int64_t integer(std::size_t row, std::size_t column, std::int64_t low, std::int64_t high) const;

    /// The cell as a finite number in (above, high]. Throws Error{input}, also for an empty cell, NaN and infinity.
    double number(std::size_t row, std::size_t column, double above, double high) const;

    /// Throws Error{input}: file:line: column: message.
    [[noreturn]] void fail_at(std::size_t row, std::size_t column, std::string_view message) const;

private:
    std::string name_;
    std::unique_ptr<const std::string> text_;
    std::deque<std::string> unquoted_;  // cells that are not verbatim in text_
    std::vector<std::string> columns_;
    std::vector<std::string_view> cells_;
    std::vector<std::int64_t> lines_;  // line number of each row
};

/// `cell` as it must stand in a CSV file: quoted if it holds a comma, a quote or a line end.
[[nodiscard]] std::string csv_cell(std::string_view cell);

}  // namespace pipeweaver
