#include "capacity/study/rows.hpp"

#include "capacity/study/row_options.hpp"
#include "pipeweaver/emulator/in_situ.hpp"

namespace pipeweaver::capacity {

namespace {

// None where no network is known, or its domains hold no tensor parallel group.
std::optional<FaultColumns> faults_of(const Study& study, const Cell& cell, const emulator::Layout& layout) {
    if (study.faulty == 0) return std::nullopt;
    const auto network = workloads::network_of(cell.machine);
    if (!network || cell.gpus % network->node != 0 || why_no_group(*network, layout.tp)) return std::nullopt;
    return fault_columns({.network = *network, .gpus = cell.gpus, .faulty = study.faulty, .tp = layout.tp});
}

}  // namespace

double cost_of(const Study& study, const Row& row, bool has_prices) {
    if (row.pace.run) return has_prices ? *row.pace.run->usd : row.pace.run->gpu_hours;
    return static_cast<double>(study.cells[row.cell].gpus) * static_cast<double>(row.step().count());
}

double time_of(const Row& row) { return row.pace.run ? row.pace.run->days : static_cast<double>(row.step().count()); }

bool meets(const Constraints& limits, const Row& row, double factor) {
    const auto& run = row.pace.run;
    if (!run) return true;
    if (limits.days && run->days * factor > *limits.days) return false;
    return !(limits.usd && run->usd && *run->usd * factor > *limits.usd);
}

void judge_by_step(const Study& study, const CellFacts& facts, Row& row) {
    row.pace = pace_of(study, study.cells[row.cell], facts, row.step());
    row.meets = meets(study.constraints, row, 1);
    row.at_risk = row.meets && !meets(study.constraints, row, 1 + row.error_percent / 100);
}

Row row_of(const Study& study, const CellResult& result, std::size_t place) {
    const Cell& cell = study.cells[result.cell];
    const Point& point = result.points[place];
    Row row{.cell = result.cell, .point = place, .flags_step = point.step};
    row.memory_left = result.facts.usable - point.memory;
    row.error_percent = result.facts.error_percent;
    row.modelled = result.facts.footing == name_of(emulator::Footing::modelled);
    row.command = options_of(cell, point.as).command("pipeweaver plan");
    row.faults = faults_of(study, cell, point.as.layout);
    judge_by_step(study, result.facts, row);
    return row;
}

Pace pace_of(const Study& study, const Cell& cell, const CellFacts& facts, Duration step) {
    const workloads::Cluster& cluster = cell.machine;
    const double seconds = static_cast<double>(step.count()) * 1e-9, gpus = static_cast<double>(cell.gpus);
    Pace pace;
    pace.tokens_per_second = static_cast<double>(facts.tokens) / seconds;
    pace.tokens_per_second_per_gpu = pace.tokens_per_second / gpus;
    pace.samples_per_second = static_cast<double>(facts.samples) / seconds;
    pace.tflops_per_gpu = facts.model_flops / seconds / gpus * 1e-12;
    pace.mfu = facts.model_flops / (seconds * gpus * workloads::device(cluster.device).bf16_flops);
    if (study.training_tokens > 0)
        pace.run = planner::training_cost(study.training_tokens, step, facts.tokens, cluster);
    return pace;
}

}  // namespace pipeweaver::capacity
