// The small model on a cluster with a batch: what partitions and steps are made of.
#pragma once

#include "pipeweaver/partition/partition.hpp"
#include "tests/support/small_model.hpp"

namespace pipeweaver::testing {

struct SmallWorkload {
    workloads::Model model = small_model();
    workloads::Cluster cluster = small_cluster(4);
    costdb::CostDatabase costs = costdb::CostDatabase::embedded("h100_sxm");
    emulator::Layout layout{.tp = 2, .pp = 2, .dp = 1};
    std::vector<workloads::Microbatch> microbatches = small_batch({5, 0, 2});

    /// Points into this object.
    partition::Workload workload() const { return {&model, &cluster, &costs, layout, &microbatches}; }
};

}  // namespace pipeweaver::testing
