// What a schedule must keep beyond the problem's own rules.
#pragma once

#include "pipeweaver/base/ids.hpp"

#include <vector>

namespace pipeweaver::search {

/// The rules of a target framework.
struct Rules {
    /// Per rank: tasks that must run in this relative order (PyTorch: the last stage's forwards, microbatch 0 first).
    std::vector<std::vector<TaskId>> fixed_order;
};

}  // namespace pipeweaver::search
