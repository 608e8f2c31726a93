// Action lists of a small job whose images differ in size.
#pragma once

#include "pipeweaver/emit/actions.hpp"
#include "tests/support/small_request.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <utility>

namespace pipeweaver::testing {

/// Two ranks of two GPUs unless `layout` says otherwise; images of 256, 64 and 128 patches in turn.
inline planner::Request layout_request(const emulator::Layout& layout = {.tp = 2, .pp = 2, .dp = 1},
                                       const std::vector<int>& images = {5, 0, 2, 3}) {
    planner::Request request = small_request(1, images);
    request.job.setup = std::make_shared<emulator::Setup>(small_setup(layout));
    for (auto& microbatch : request.batch.microbatches) {
        for (std::size_t i = 0; i < microbatch.items.size(); ++i) {
            workloads::Item& size = microbatch.items[i].size;
            size.patches = i % 3 == 0 ? 256 : i % 3 == 1 ? 64 : 128;
            microbatch.tokens += size.patches / 4 - size.tokens;
            size.tokens = size.patches / 4;
        }
        microbatch.lengths = {microbatch.tokens};
    }
    return request;
}

/// Cut by the partitioner of that name.
inline partition::Partition cut_of(const planner::Request& request, std::string_view partitioner) {
    return partition::partitioner(partitioner).make(*request.job.setup, request.batch.microbatches, 1);
}

/// The lists of the first replica of a plan, and the plan.
struct PlannedLists {
    planner::Request request;
    planner::Plan plan;
    emit::ActionLists lists;
};

inline PlannedLists planned_lists(planner::Request request, partition::Partition partition) {
    request = on_partition(std::move(request), std::move(partition));
    planner::Plan plan = planned(request);
    auto lists = emit::actions_of(request.job, request.batch, plan.replicas.front(),
                                  emit::loss_totals(request.job, request.batch, plan.partition()));
    return {std::move(request), std::move(plan), std::move(lists)};
}

/// They can be run, and read back they are the same text.
inline void check_runnable(const emit::ActionLists& lists) {
    CHECK(emit::why_not_runnable(lists) == std::nullopt);
    const std::string text = to_json(lists);
    CHECK(to_json(emit::parse_actions("actions", text)) == text);
}

}  // namespace pipeweaver::testing
