#include "costdb/store/provenance.hpp"

#include "costdb/import/table_row.hpp"

#include <algorithm>

namespace pipeweaver::costdb {

Provenance::Provenance(const CsvTable& table, Measurements& into) : table_(table), into_(into) {
    for (const auto column : provenance_columns) is_there_ = is_there_ || table.find(column).has_value();
    if (!is_there_) return;
    for (const auto column : provenance_columns) static_cast<void>(table.column(column));
    seen_ = {into.gemm.size(),           into.attention.size(), into.collective.size(),
             into.point_to_point.size(), into.moe.size(),       into.elementwise.size()};
}

std::int64_t Provenance::origin_of(std::size_t row) {
    const TableRow cells(table_, row);
    const MeasurementOrigin named{std::string(cells.text("source")), std::string(cells.text("origin")),
                                  std::string(cells.text("licence")), ""};
    auto& origins = into_.origins;
    const auto known = std::find_if(origins.begin(), origins.end(), [&](const auto& o) {
        return o.file == named.file && o.origin == named.origin && o.licence == named.licence;
    });
    const auto place = known - origins.begin();
    if (known == origins.end()) origins.push_back(named);
    return place;
}

void Provenance::stamp(std::size_t row) {
    if (!is_there_) return;
    const auto origin = origin_of(row);
    const auto mark = [&](auto& points, std::size_t& seen) {
        for (; seen < points.size(); ++seen) points[seen].origin = origin;
    };
    mark(into_.gemm, seen_[0]);
    mark(into_.attention, seen_[1]);
    mark(into_.collective, seen_[2]);
    mark(into_.point_to_point, seen_[3]);
    mark(into_.moe, seen_[4]);
    mark(into_.elementwise, seen_[5]);
}

}  // namespace pipeweaver::costdb
