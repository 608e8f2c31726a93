#include "costdb/import/table_row.hpp"

#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::costdb {

bool TableRow::is_given(std::string_view column) const {
    const auto at = table_.find(column);
    return at && !table_.text(row_, *at).empty();
}

std::int64_t TableRow::whole(std::string_view column, std::int64_t high) const {
    return table_.integer(row_, table_.column(column), 1, high);
}

std::int64_t TableRow::whole(std::string_view column, std::int64_t high, std::int64_t otherwise) const {
    return is_given(column) ? whole(column, high) : otherwise;
}

double TableRow::number(std::string_view column, double high) const {
    return table_.number(row_, table_.column(column), 0, high);
}

std::string_view TableRow::text(std::string_view column) const {
    const auto cell = table_.text(row_, table_.column(column));
    if (cell.empty()) fail(column, "is empty");
    return cell;
}

std::string_view TableRow::text(std::string_view column, std::string_view otherwise) const {
    return otherwise.empty() || is_given(column) ? text(column) : otherwise;
}

bool TableRow::flag(std::string_view column) const {
    const auto cell = text(column);
    if (cell == "1" || cell == "true" || cell == "True") return true;
    if (cell == "0" || cell == "false" || cell == "False") return false;
    fail(column, must_be(cell, "one of 1, 0, true, false"));
}

std::size_t TableRow::choice(std::string_view column, std::span<const std::string> names,
                             std::string_view otherwise) const {
    const auto cell = text(column, otherwise);
    const auto found = std::find(names.begin(), names.end(), cell);
    if (found == names.end()) fail(column, unknown(column, cell, names));
    return static_cast<std::size_t>(found - names.begin());
}

Dtype TableRow::dtype(std::string_view otherwise) const {
    return static_cast<Dtype>(choice("dtype", dtype_names(), otherwise));
}

void TableRow::fail(std::string_view column, std::string_view message) const {
    table_.fail_at(row_, table_.column(column), message);
}

}  // namespace pipeweaver::costdb
