#include "costdb/store/provenance.hpp"

#include "costdb/import/table_row.hpp"

#include <algorithm>

namespace pipeweaver::costdb {

Provenance::Provenance(const CsvTable& table, Measurements& into) : table_(table), into_(into) {
    for (const auto column : provenance_columns) is_there_ = is_there_ || table.find(column).has_value();
    if (!is_there_) return;
    for (const auto column : provenance_columns) static_cast<void>(table.column(column));
    std::size_t at = 0;
    for_each_table([&]<class Rows>(Rows) { seen_[at++] = (into.*Rows::points).size(); });
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
    std::size_t at = 0;
    for_each_table([&]<class Rows>(Rows) {
        auto& points = into_.*Rows::points;
        std::size_t& seen = seen_[at++];
        for (; seen < points.size(); ++seen) points[seen].origin = origin;
    });
}

}  // namespace pipeweaver::costdb
