// What the GPUs of rows wait for samples.
#include "capacity/show/words.hpp"
#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text.hpp"
#include "pipeweaver/base/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::capacity::show {

namespace {

void add_row(TextTable& table, const FoundStudy& found, std::size_t place) {
    const Row& row = found.row(place);
    const RowInput& input = *row.fed();
    const auto usd = usd_waited(found.cell(row), row);
    table.add({std::to_string(place + 1), human(input.waits), percent(ratio(input.waits, row.step())),
               usd ? fmt::format("{:.4f}", *usd) : "", input.decides.empty() ? "nothing" : input.decides,
               input.enough_workers ? std::to_string(*input.enough_workers) : "",
               planner::with_commas(static_cast<double>(input.cores)),
               planner::with_commas(static_cast<double>(row.cores_bought)),
               row.usd_of_cores > 0 ? planner::with_commas(row.usd_of_cores) : ""});
}

}  // namespace

std::optional<double> usd_waited(const Cell& cell, const Row& row) {
    if (row.fed() == nullptr || price_of(cell) == 0) return std::nullopt;
    const double hours = static_cast<double>(row.fed()->waits.count()) * 1e-9 / 3600;
    return hours * static_cast<double>(cell.gpus) * price_of(cell);
}

std::string input_text(const FoundStudy& found) {
    constexpr std::size_t most = 10;
    TextTable table({{"row"},
                     {"GPUs wait"},
                     {"of a step"},
                     {"USD a step"},
                     {"decides", true},
                     {"workers enough"},
                     {"cores"},
                     {"bought"},
                     {"USD of these"}});
    std::string refused;
    bool any = false;
    for (std::size_t i = 0; i < std::min(most, found.ranking.rows.size()); ++i) {
        const RowInput* input = found.row(i).fed();
        if (input == nullptr) continue;
        any = true;
        if (input->why_not.empty())
            add_row(table, found, i);
        else
            refused += fmt::format("row {}: its loader is not replayed: {}\n", i + 1, input->why_not);
    }
    if (!any) return {};
    return "\nwhat GPUs wait for samples, which is in days and USD, and cores of all replicas' loaders:\n" +
           table.text() + refused;
}

}  // namespace pipeweaver::capacity::show
