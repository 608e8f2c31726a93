#include "pipeweaver/emulator/layer_costs.hpp"
#include "pipeweaver/planner/partition_choice.hpp"
#include "planner/job/sample.hpp"

namespace pipeweaver::planner {

using namespace emulator;

std::vector<Duration> PartitionLoads::rank_times() const {
    std::vector<Duration> times;
    for (const StageLoad& one : stages) {
        times.resize(std::max(times.size(), index(one.stage.rank) + 1));
        times[index(one.stage.rank)] += one.time;
    }
    return times;
}

PartitionLoads loads_of(const Request& request, const partition::Partition& partition) {
    const Setup& setup = *request.setup;
    LayerCosts costs = LayerCosts::usual(setup);
    const Microbatches sample = cut_on(request);
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
    const auto built = build(setup, partition, {units.front()}, {.name = "loads"});
    if (!built.shortage)
        for (const StaticMemory& memory : built.cut.step.memory) loads.fixed.push_back(memory.total());
    return loads;
}

}  // namespace pipeweaver::planner
