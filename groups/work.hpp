// Whether a module of a group has anything to do.
#pragma once

#include "pipeweaver/partition/partition.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <algorithm>
#include <vector>

namespace pipeweaver::groups {

[[nodiscard]] inline bool has_work(const workloads::Module& module,
                                   const std::vector<workloads::Microbatch>& microbatches) {
    return std::any_of(microbatches.begin(), microbatches.end(), [&](const workloads::Microbatch& one) {
        return partition::shape_in(module, one, 0, one.items.size()).positions() > 0;
    });
}

}  // namespace pipeweaver::groups
