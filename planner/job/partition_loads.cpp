#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/planner/partition_choice.hpp"
#include "planner/job/sample.hpp"

namespace pipeweaver::planner {

using namespace emulator;

std::vector<const StageLoad*> PartitionLoads::all() const {
    std::vector<const StageLoad*> loads;
    for (const StageLoad& one : in_phases) loads.push_back(&one);
    for (const StageLoad& one : stages) loads.push_back(&one);
    return loads;
}

std::vector<Duration> PartitionLoads::rank_times() const {
    std::vector<Duration> times;
    for (const StageLoad* one : all()) {
        times.resize(std::max(times.size(), index(one->stage.rank) + 1));
        times[index(one->stage.rank)] += one->time;
    }
    return times;
}

namespace {

using Units = std::vector<std::vector<std::vector<Unit>>>;

// Of each rank's GPUs their mean share: items are dealt by cost.
void add_phases(const Setup& setup, const partition::Partition& partition, const Units& units, PartitionLoads& loads) {
    const auto modules = phase_modules(partition);
    const std::int64_t gpus = setup.layout.gpus_of_rank() * setup.layout.pp;
    LayerCosts costs = LayerCosts::usual(setup, partition.layouts);
    for (std::int64_t r = 0; r < setup.layout.pp; ++r)
        for (std::size_t d = 0; d < modules.size(); ++d) {
            const LayerRange all{modules[d], 0, setup.model.modules[modules[d]].architecture.layers};
            StageLoad& load = loads.in_phases.emplace_back(StageLoad{{RankId{static_cast<std::uint32_t>(r)}, {all}}});
            for (const auto& microbatch : units)
                for (const Unit& unit : microbatch[partition.chains.size() + d])
                    for (const PassKind pass : {PassKind::forward, PassKind::backward})
                        load.time += costs.stage(load.stage, unit.shapes, pass).time;
            load.time /= static_cast<std::int64_t>(units.size()) * gpus;
        }
}

}  // namespace

PartitionLoads loads_of(const Job& job, const Batch& batch, const partition::Partition& partition) {
    const Setup& setup = *job.setup;
    LayerCosts costs = LayerCosts::usual(setup, partition.layouts);
    const Microbatches sample = cut_on(job, batch);
    const auto units = partition::units(partition, setup.model, sample);
    PartitionLoads loads;
    loads.usable = capacity_of(setup);
    for (std::size_t c = 0; c < partition.chains.size(); ++c)
        for (const StageLayers& stage : partition.chains[c].stages) {
            StageLoad& load = loads.stages.emplace_back(StageLoad{stage});
            for (const auto& microbatch : units)
                for (const Unit& unit : microbatch[c])
                    for (const PassKind pass : {PassKind::forward, PassKind::backward})
                        load.time += costs.stage(stage, unit.shapes, pass).time;
            load.time /= static_cast<std::int64_t>(sample.size());
        }
    add_phases(setup, partition, units, loads);
    const auto built = build(setup, partition, {units.front()}, {.name = "loads"});
    if (!built.shortage)
        for (const StaticMemory& memory : built.cut.step.memory) loads.fixed.push_back(memory.total());
    return loads;
}

}  // namespace pipeweaver::planner
