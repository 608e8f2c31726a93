// A plan of the small model, small enough for a test.
#pragma once

#include "pipeweaver/planner/plan.hpp"
#include "tests/support/small_workload.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::testing {

/// On `dp` replicas of 4 ranks of 2 GPUs; a sample a microbatch, with so many images each.
inline planner::Request small_request(std::int64_t dp = 1, const std::vector<int>& images = {5, 0, 2, 9, 1, 4, 0, 7}) {
    planner::Request request;
    request.job.setup = std::make_shared<emulator::Setup>(small_setup({.tp = 2, .pp = 4, .dp = dp}));
    request.batch.microbatches = small_batch(images);
    for (std::size_t i = 0; i < request.batch.microbatches.size(); ++i) {
        workloads::Sample sample;
        sample.id = "s" + std::to_string(i);
        sample.text_tokens = 1024;
        request.batch.samples.push_back(sample);
    }
    request.job.max_rounds = 5;
    return request;
}

/// Gives the request another setup, changed by `change`, in which nothing is priced yet.
template <class Asked, class Change>
void change_setup(Asked& request, const Change& change) {
    auto setup = std::make_shared<emulator::Setup>(with_layout(*request.job.setup, request.job.setup->layout));
    change(*setup);
    request.job.setup = std::move(setup);
}

/// Planned until the request's rounds are through, however long that takes. Opponents are left out unless they are
/// wanted: they take longer than all the rest of so small a plan.
inline planner::Plan planned(const planner::Request& request, const Executor& execute = in_order,
                             const planner::Wanted& wanted = {.opponents = false}) {
    return planner::make_plan(request.job, request.batch, execute, {}, wanted);
}

/// The request, its job on this partition.
inline planner::Request on_partition(planner::Request request, partition::Partition partition) {
    request.job.fixed = partition::PartitionFile{std::move(partition), {}};
    return request;
}

}  // namespace pipeweaver::testing
