// Serves a device from another's measurements and a few of its own.
//
// Method       of a shape, latency = the new device's roofline * (the donor's latency / its roofline)^0.5 * exp(c),
//              where c is a smooth function of ln m, ln n, ln k through the measured shapes
//              (costdb/transfer/correction.hpp), for each number format by itself. The donor's whole table is carried
//              over so. The power: half of what a device makes of a shape is its own. Of 0, 0.5, 0.7 and 1, 0.5 was
//              best or near it in transfers A100 -> H100, A100 -> H200, H100 -> B200 and H100 -> H200 with 32 points
//              (7.2, 5.3, 8.3, 3.5 % in the median of big shapes).
// Points       the shapes to measure are k-medoids of those that are needed, in log-shape space, weighted by the root
//              of the time that they take: the time itself would spend the points on the few largest.
// Answers      measured shapes are exact. Others within a distance of 1 in log-shape space (a factor e along one axis)
//              of a measured one are interpolated at best, with 1.25 times the transfer's error; beyond, extrapolated
//              with twice that error. The transfer's error: nine of ten of the measured shapes, each left out of the
//              fit, lie within it. The factors are what those four transfers need: medoids are more ordinary than other
//              shapes.
#pragma once

#include "pipeweaver/costdb/database.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::costdb {

/// A GEMM that will be asked for, `times` times.
struct NeededGemm {
    Gemm gemm;
    double times = 1;
};

/// At most `points` of the needed shapes of each number format, in their order. Throws what the donor's cost() throws.
[[nodiscard]] std::vector<Gemm> shapes_to_measure(const CostDatabase& donor, std::span<const NeededGemm> needs,
                                                  std::size_t points);

/// Errors of answers in percent: the value that half of them, and that nine of ten, do not exceed.
struct Quantiles {
    double median = 0, p90 = 0;
};

/// How well the measured shapes of one number format are met.
struct TransferReport {
    Dtype dtype = Dtype::bf16;
    std::size_t measured = 0, transferred = 0;
    Quantiles by_peak{};   ///< by the donor's latency times the ratio of the peaks
    Quantiles left_out{};  ///< by a transfer from the others
    double error_percent = 0;
};

struct Transferred {
    Measurements points;  ///< of the new device: its own and, marked as such, those carried over
    std::vector<TransferReport> reports;
};

/// The fewest shapes of a number format that a transfer is made from.
constexpr std::size_t fewest_measured = 8;

/// `measured` with the donor's GEMMs carried over, for each number format that both have forward points of. Throws
/// Error{input} where there is none, and for fewer than fewest_measured of one.
[[nodiscard]] Transferred transfer(const CostDatabase& donor, Measurements measured);

/// `points` as a database file. Throws Error{io}.
void write_database(const std::filesystem::path& path, const Measurements& points);

/// A table of measurements with its origin, equal keys merged as by an import. Throws as import_tables() does.
[[nodiscard]] Measurements read_measurements(const std::filesystem::path& path, std::string_view device,
                                             const std::string& origin, const std::string& licence);

}  // namespace pipeweaver::costdb
