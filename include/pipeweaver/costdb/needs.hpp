// The GEMMs that somebody needs, as tables.
#pragma once

#include "pipeweaver/base/csv.hpp"
#include "pipeweaver/costdb/transfer.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::costdb {

/// Rows of dtype,m,n,k[,pass][,batch][,times], or gemm.csv of `costdb needs`; a backward pass counts as its forward
/// shape. Equal shapes become one with the sum of their times. Throws Error{input}: file:line: column: what is wrong.
[[nodiscard]] std::vector<NeededGemm> needed_gemms(const CsvTable& table);

/// The forward GEMMs of a database with m >= 512 and mnk >= 2^33, each once, in number formats that `device` has.
[[nodiscard]] std::vector<NeededGemm> big_gemms(const CostDatabase& database, std::string_view device);

/// dtype,m,n,k,pass: what a profiler is to measure, and with latency_us what `costdb import` reads.
[[nodiscard]] std::string shapes_csv(std::span<const Gemm> shapes);

}  // namespace pipeweaver::costdb
