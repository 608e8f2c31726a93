// What faulty nodes leave of the rows' GPUs, beneath the answer.
#include "capacity/show/fault_text.hpp"

#include "pipeweaver/base/figures.hpp"
#include "pipeweaver/base/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::capacity::show {

std::string faults_text(const Study& study, const std::vector<CellResult>& results, const Ranking& ranking) {
    constexpr std::size_t most = 10;
    TextTable table({{"row"},
                     {"cluster", true},
                     {"GPUs"},
                     {"TP"},
                     {"usable"},
                     {"wasted"},
                     {"job at 99 %"},
                     {"spares"},
                     {"USD of a GPU's network"}});
    bool any = false;
    for (std::size_t i = 0; i < std::min(most, ranking.rows.size()); ++i) {
        const Row& row = ranking.rows[i];
        if (!row.faults) continue;
        any = true;
        const Cell& cell = study.cells[row.cell];
        const FaultColumns& of = *row.faults;
        table.add({std::to_string(i + 1), cell.cluster, std::to_string(cell.gpus),
                   std::to_string(results[row.cell].points[row.point].as.layout.tp),
                   fmt::format("{:.1f}", of.usable_gpus), percent(of.wasted_share), std::to_string(of.job_gpus),
                   of.spares ? std::to_string(*of.spares) : "",
                   of.usd_per_gpu ? fmt::format("{:.0f}", *of.usd_per_gpu) : ""});
    }
    if (!any) return {};
    return fmt::format(
               "\nwith {:g} % of the nodes down: GPUs in whole tensor parallel groups on average, healthy ones in "
               "none, a job's that\nis there with 99 %, and what to buy beside them so that all are\n",
               100 * study.faulty) +
           table.text();
}

}  // namespace pipeweaver::capacity::show
