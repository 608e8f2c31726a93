// The small model on a cluster with a batch: what partitions and steps are made of.
#pragma once

#include "pipeweaver/emulator/setup.hpp"
#include "pipeweaver/partition/partitioners.hpp"
#include "tests/support/small_model.hpp"

#include <memory>
#include <string_view>
#include <vector>

namespace pipeweaver::testing {

/// The embedded costs, read once.
inline std::shared_ptr<const costdb::CostDatabase> small_costs() {
    static const auto costs = std::make_shared<const costdb::CostDatabase>(costdb::CostDatabase::embedded("h100_sxm"));
    return costs;
}

/// The small model in a layout, on as many GPUs as that takes.
inline emulator::Setup small_setup(const emulator::Layout& layout) {
    return {small_model(), small_cluster(layout.gpus()), layout, small_costs()};
}

/// A setup without a store, with a batch: nothing that was priced is kept, so a test may change it between two steps.
struct SmallWorkload : emulator::Setup {
    explicit SmallWorkload(const emulator::Layout& in = {.tp = 2, .pp = 2, .dp = 1},
                           const std::vector<int>& images = {5, 0, 2})
        : emulator::Setup(small_setup(in)), microbatches(small_batch(images)) {
        store.reset();
    }

    partition::Partition cut(std::string_view partitioner, std::int64_t chunks = 1) const {
        return partition::partitioner(partitioner).make(*this, microbatches, chunks);
    }

    /// Points into this object.
    emulator::StepInput input(const partition::Partition& partition) const {
        return partition::step_input(*this, partition, partition::units(partition, model, microbatches));
    }

    std::vector<workloads::Microbatch> microbatches;
};

}  // namespace pipeweaver::testing
