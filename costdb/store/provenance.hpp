// Columns source, origin, licence of a table: who measured each of its points, as `costdb export` writes them.
#pragma once

#include "costdb/point_tables.hpp"
#include "pipeweaver/base/csv.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace pipeweaver::costdb {

constexpr std::array<std::string_view, 3> provenance_columns{"source", "origin", "licence"};

class Provenance {
public:
    /// Throws Error{input} for a table that has some of the columns, but not all.
    Provenance(const CsvTable& table, Measurements& into);

    /// Gives the points that were added since the last call the origin that `row` names. Throws Error{input} for an
    /// empty cell.
    void stamp(std::size_t row);

private:
    std::int64_t origin_of(std::size_t row);

    const CsvTable& table_;
    Measurements& into_;
    std::array<std::size_t, point_tables> seen_{};  // of each table
    bool is_there_ = false;
};

}  // namespace pipeweaver::costdb
