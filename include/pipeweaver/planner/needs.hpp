// The operators that planning a step asks the cost database for: what a profiler should measure, most important first.
#pragma once

#include "pipeweaver/emulator/step_operators.hpp"
#include "pipeweaver/planner/job.hpp"

#include <variant>
#include <vector>

namespace pipeweaver::planner {

/// One question. Attention is the batch of equal sequences that is asked for in place of a packed one, and a GEMM's
/// backward its two halves; of experts the whole layer's forward, of which every GPU does a part in every pass.
using Question = std::variant<costdb::Gemm, costdb::Attention, costdb::Collective, costdb::PointToPoint,
                              costdb::Elementwise, costdb::MixtureOfExperts>;

struct Need {
    Question question;
    emulator::KernelShape shape;  ///< of memory-bound work: the first that asked
    std::int64_t times = 0;       ///< in a step, the most of any partition
    double share = 0;             ///< of the operators' time, the mean over the partitions; all needs sum to 1
    costdb::Cost cost;            ///< as the setup's costs answer it
};

/// What the steps of the known partitions and of the one that a plan takes now ask for, each question once, by falling
/// share. Which partition a plan takes may change with the costs, so all count. Transfers and collectives count as if
/// nothing hid them. Throws as make_plan(); a partition that does not fit is passed over unless none fits.
[[nodiscard]] std::vector<Need> needs(const Job& job, const Batch& batch, const Executor& execute = in_order);

}  // namespace pipeweaver::planner
