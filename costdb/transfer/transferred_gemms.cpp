#include "costdb/transfer/transferred_gemms.hpp"

#include "costdb/store/store.hpp"
#include "costdb/tables/calibration.hpp"

#include <algorithm>

namespace pipeweaver::costdb {

namespace {

// See transfer.hpp.
constexpr std::size_t enough_of_its_own = 1000;
constexpr double reach = 1, near_error = 1.25, far_error = 2;

// The table that answers for a number format; see gemm_table.cpp.
Dtype table_of(Dtype dtype) {
    if (dtype == Dtype::fp16) return Dtype::bf16;
    return dtype == Dtype::int8 ? Dtype::fp8 : dtype;
}

std::int64_t transferred_permille(const Measurements& measurements, const GemmPoint& point) {
    const auto origin = static_cast<std::size_t>(point.origin);
    return origin < measurements.origins.size() ? measurements.origins[origin].transferred_permille : 0;
}

}  // namespace

TransferredGemms::TransferredGemms(const DeviceFacts& device, const Measurements& measurements)
    : exact_percent_(error_percent(Subject::gemm_bf16, device.family, Region::exact, true)),
      far_fp8_percent_(error_percent(Subject::gemm_fp8, device.family, Region::modelled, false)) {
    for (const auto& point : measurements.gemm) {
        const auto permille = transferred_permille(measurements, point);
        if (permille == 0) continue;
        if (find(point.dtype) == nullptr) tables_.push_back({.dtype = point.dtype});
        auto& table = *std::find_if(tables_.begin(), tables_.end(), [&](auto& t) { return t.dtype == point.dtype; });
        table.error_percent = std::max(table.error_percent, static_cast<double>(permille) / 10);
    }
    for (auto& table : tables_) {
        for (const auto& point : measurements.gemm) {
            if (point.dtype != table.dtype || transferred_permille(measurements, point) > 0) continue;
            table.latency_ns[key_of(point)] = point.latency_ns;
            if (point.pass == Pass::forward) table.places.push_back(place_of(point.m, point.n, point.k));
        }
        table.is_needed = table.places.size() < enough_of_its_own;
    }
}

const TransferredGemms::Table* TransferredGemms::find(Dtype dtype) const {
    const auto found = std::find_if(tables_.begin(), tables_.end(), [&](const auto& t) { return t.dtype == dtype; });
    return found == tables_.end() ? nullptr : &*found;
}

std::vector<GemmPoint> TransferredGemms::table_points(std::span<const GemmPoint> points) const {
    std::vector<GemmPoint> kept;
    for (const auto& point : points) {
        const auto* table = find(point.dtype);
        const bool is_own = table != nullptr && table->latency_ns.contains(key_of(point));
        if (table == nullptr || is_own != table->is_needed) kept.push_back(point);
    }
    return kept;
}

std::optional<Answer> TransferredGemms::measured(const Gemm& query) const {
    const auto* table = query.batch == 1 ? find(query.dtype) : nullptr;
    if (table == nullptr || !table->is_needed) return std::nullopt;
    const auto found = table->latency_ns.find({query.dtype, query.pass, query.m, query.n, query.k});
    if (found == table->latency_ns.end()) return std::nullopt;
    return Answer{static_cast<double>(found->second), Basis::exact, exact_percent_};
}

Answer TransferredGemms::capped(Answer answer, const Gemm& query) const {
    const auto* table = find(table_of(query.dtype));
    if (table == nullptr || !table->is_needed) return answer;
    const auto at = place_of(query.batch * query.m, query.n, query.k);
    const bool is_near = std::any_of(table->places.begin(), table->places.end(),
                                     [&](const auto& place) { return distance(place, at) <= reach; });
    answer.basis = at_best(is_near ? Basis::interpolated : Basis::extrapolated, answer.basis);
    answer.error_percent = std::max(answer.error_percent, table->error_percent * (is_near ? near_error : far_error));
    // The roofline, which a transfer leans on, says little of fp8 where nothing is measured.
    if (!is_near && table->dtype == Dtype::fp8) answer.error_percent = std::max(answer.error_percent, far_fp8_percent_);
    return answer;
}

}  // namespace pipeweaver::costdb
