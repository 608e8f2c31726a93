// What operators cost: measured latencies, interpolated by documented methods, each answer with its basis and error.
//
// GEMM         ln(latency / base) is interpolated and multiplied back. base: 2 us + max(operations / peak, traffic /
//              bandwidth); on Ampere waves of the best of six output tiles instead (tables/base_cost.cpp).
//              A hole of the (m,n,k) grid: mean of the interpolations along ln m, ln n and ln k; an axis weighs
//              1 / (miss + 0.02)^3, its miss being how far interpolation along it is off at the points around, and half
//              where points lie on one side only. Off the grid: linear in ln n, ln k, ln m between the lines around it.
//              Beyond: the ratio is held, above the largest m the latency grows with m. After Ampere, m >= 16 that
//              is a multiple of 16 leans on such m only, and other m on other m only. fp16 runs as bf16, int8 as fp8.
//              A batch: batch * m rows, with the batch's weight traffic; extrapolated.
// Attention    the same with 5 us + max(operations / (0.6 peak), traffic / bandwidth), along batch, seq_len, q_heads,
//              key heads and head size. Heads between the measured sizes run at the next size up; where that is more
//              than 4/3 of theirs its time is scaled by the 0.65th power of the size, less in short kernels;
//              extrapolated. Encoder heads wider than the encoder tables: the widest of those, times what the causal
//              tables say of the wider; extrapolated. Encoder attention where only causal is measured: twice the causal
//              time, extrapolated. Where one batch size alone is measured, a batch is as many more heads, and a
//              sequence shorter than all measured as many fewer: as many blocks of the kernel.
// Backward     by its own table where that is nearer than the forward times a ratio, else by that: GEMM input gradient
//              0.99 (Ampere), 1.00 (Hopper), 1.01 (Blackwell), weight gradient 1.05; attention 2.86, 2.7, 2.99, on
//              Ampere and Blackwell less where few heads leave multiprocessors idle. Forward times a ratio is
//              interpolated at best.
// Collectives  logarithmic along the message per number of GPUs, proportional beyond the largest, held below the
//              smallest; bf16, fp32 as fp16 (fp32 all-reduces by their own sweep), fp8 as int8. In 8-GPU nodes the
//              sweep of such a node answers; `gpus_per_node` below 8 asks for the sweep of that layout. Other numbers
//              of GPUs: between, else a ring. Across nodes where no sweep is: the collective inside each node, and over
//              the network that a node's GPUs share a ring, or for all-reduces a double binary tree where that is
//              faster; modelled. On Ampere one after the other, at 0.76 of the network's speed where that is given;
//              after it in pieces beside each other, the longer of both, at 0.9, all-to-alls at 0.72. Noisy sweeps
//              (those with nodes) lose points more than 1.5 times off the median of their eight neighbours.
// Transfers    as collectives. A device without own tables (H200, H800, H20) uses those of H100, extrapolated.
// MoE          the layer of that shape along ln tokens; the nearest measured shape by the ratio, extrapolated.
// Modelled     what no table of the device holds: base times the ratio that big shapes have on measured devices.
// Elementwise  by kind and pass logarithmic along the traffic, as links; beyond the measured points, and for kinds
//              without any, the traffic at 0.8 of the memory bandwidth.
//
// Units        Duration is whole nanoseconds, rounded once, here. error_percent: nine of ten answers of that kind lie
//              within it; about 1.6 standard deviations of ln(answer / truth), times 100. Of interpolated answers it
//              grows with the misses around the query; of exact ones it is the spread of the repetitions; never below
//              2. Constants and procedure: tables/calibration.cpp.
// Threads      a CostDatabase is immutable; any number of threads may ask it.
// Determinism  equal database and query give equal answers.
// Sources      notes in costdb/README.md, data in NOTICE.
#pragma once

#include "pipeweaver/costdb/measurements.hpp"
#include "pipeweaver/costdb/operators.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::costdb {

/// Devices that a database file, or if `path` is empty the embedded one, has points of; sorted. Throws as read() does.
[[nodiscard]] std::vector<std::string> devices_with_points(const std::filesystem::path& path = {});

/// Costs of one device.
class CostDatabase {
public:
    /// The tables that ship with the program. `device` is a canonical name or an alias of workloads::devices().
    /// Throws Error{input} for an unknown device. A known device without tables answers by model.
    [[nodiscard]] static CostDatabase embedded(std::string_view device);

    /// Reads a database file, gzip allowed. Throws Error{input} (damaged, newer version, device not in it), Error{io}.
    [[nodiscard]] static CostDatabase read(const std::filesystem::path& path, std::string_view device);

    /// The points of a file, and after them those of the embedded tables whose keys the file lacks. Throws as read().
    [[nodiscard]] static CostDatabase over_embedded(const std::filesystem::path& path, std::string_view device);

    /// A database of these points. Throws Error{input} for an unknown device. Pre: keys occur once, values are >= 1.
    [[nodiscard]] static CostDatabase from(Measurements measurements);

    CostDatabase(CostDatabase&&) noexcept;
    CostDatabase& operator=(CostDatabase&&) noexcept;
    ~CostDatabase();

    const std::string& device() const;

    /// The points it answers from.
    const Measurements& measurements() const;

    // Each throws Error{input} for sizes below 1 or above 2^32 (messages 2^50), for answers above 100 days and for what
    // can have no cost (a pass that the operator lacks, a number format that the device lacks).
    [[nodiscard]] Cost cost(const Gemm& query) const;
    [[nodiscard]] Cost cost(const Attention& query) const;
    [[nodiscard]] Cost cost(const Collective& query) const;
    [[nodiscard]] Cost cost(const PointToPoint& query) const;
    [[nodiscard]] Cost cost(const MixtureOfExperts& query) const;
    [[nodiscard]] Cost cost(const Elementwise& query) const;
    [[nodiscard]] Cost cost(const DeltaNet& query) const;

    /// `shape.batch` and `shape.seq_len` are ignored. Asks for equal_batch(), and scales by the scores; equal lengths
    /// give exactly the answer of the padded query. Keys of another length and windows are extrapolated at best. Throws
    /// as equal_batch() and cost().
    [[nodiscard]] Cost packed_attention(const Attention& shape, const PackedSequences& packed) const;

private:
    struct Tables;
    explicit CostDatabase(std::unique_ptr<const Tables> tables);
    std::unique_ptr<const Tables> tables_;
};

}  // namespace pipeweaver::costdb
