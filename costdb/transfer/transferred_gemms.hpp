// What a table that was carried over from another device may claim: its points are no measurements.
//
// A device without such a table, or with a thousand forward points of its own, which say more: every function hands
// back what it was given, but for the transferred points.
#pragma once

#include "costdb/tables/answer.hpp"
#include "costdb/tables/device_facts.hpp"
#include "costdb/transfer/k_medoids.hpp"
#include "pipeweaver/costdb/measurements.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

namespace pipeweaver::costdb {

class TransferredGemms {
public:
    TransferredGemms() = default;
    TransferredGemms(const DeviceFacts& device, const Measurements& measurements);

    /// Nothing was carried over: table_points() hands back what it was given.
    bool is_empty() const { return tables_.empty(); }

    /// The points that the table interpolates between: where there are transferred ones of a number format, only they.
    /// The measured ones have shaped them, and are too few and noisy to be neighbours of each other.
    std::vector<GemmPoint> table_points(std::span<const GemmPoint> points) const;

    /// The device's own point beside a transferred table.
    std::optional<Answer> measured(const Gemm& query) const;

    /// At best interpolated, extrapolated far from what was measured, with at least the transfer's error there.
    Answer capped(Answer answer, const Gemm& query) const;

private:
    struct Table {
        Dtype dtype = Dtype::bf16;
        double error_percent = 0;
        std::vector<Place> places{};  // of the device's own forward points
        std::map<std::tuple<Dtype, Pass, std::int64_t, std::int64_t, std::int64_t>, std::int64_t> latency_ns{};  // own
        bool is_needed = true;
    };

    const Table* find(Dtype dtype) const;

    std::vector<Table> tables_;
    double exact_percent_ = 0, far_fp8_percent_ = 0;
};

}  // namespace pipeweaver::costdb
