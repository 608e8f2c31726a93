// The parts of a model of several, while they are joined.
#pragma once

#include "pipeweaver/workloads/model.hpp"
#include "workloads/hf/part.hpp"
#include "workloads/hf/processors.hpp"

namespace pipeweaver::workloads::hf {

/// The parts while they are joined. Either encoder may be missing.
struct Towers {
    Part root, vision;
    Architecture vit, llm;
    std::int64_t merge = 1;  ///< patches of a side that make one token
    Processors processors{};
};

}  // namespace pipeweaver::workloads::hf
