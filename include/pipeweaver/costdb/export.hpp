// The measured points of a database as the tables that `costdb import` reads.
//
// Tables       gemm, attention, collective (inside a node), nodes (collectives and transfers with GPUs per node), moe,
//              elementwise and gdn; the columns are those of import.hpp with pass and spread_percent where the table
//              may have them (empty: not stated), and then source, origin and licence of each point.
// Left out     points that were carried over from another device: they are no measurements.
// Round trip   what is imported of an export are the same points, but for the spreads of `nodes`, whose table has none.
#pragma once

#include "pipeweaver/costdb/database.hpp"

#include <cstddef>
#include <span>
#include <string>

namespace pipeweaver::costdb {

/// "gemm", "attention", "collective", "nodes", "moe", "elementwise".
[[nodiscard]] std::span<const std::string> exported_tables();

struct Exported {
    std::string csv;  ///< with a header, also without rows
    std::size_t points = 0;
    std::size_t left_out = 0;  ///< points that were carried over
};

/// Throws Error{input} for an unknown table.
[[nodiscard]] Exported export_table(const Measurements& points, const std::string& table);

}  // namespace pipeweaver::costdb
