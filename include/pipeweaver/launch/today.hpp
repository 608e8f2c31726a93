// What runs today, as a launch script says it, for the ladder of a plan.
#pragma once

#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/plan_options.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::launch {

/// Whether the text of --now is the name of a launch script or configuration, not words: it has a '/', ends as such
/// files do, or is a file.
[[nodiscard]] bool is_script(std::string_view now);

struct TakenScript {
    std::string file;                  ///< empty: there is none
    std::vector<std::string> notes{};  ///< what is not taken as it is said, sentences
    std::string global_batch{};        ///< "--global-batch-size 64"; empty: it says none
    std::int64_t samples = 0;          ///< of a step, as the launch counts them
    std::int64_t microbatch = 1;       ///< samples of one
    bool packs = false;                ///< a setting says that several share a sequence
};

/// What the script says of the batch and a batch file does not take, a sentence; empty: nothing.
[[nodiscard]] std::string not_taken_by(const planner::Batch& batch, const TakenScript& script);

/// What runs today may be other than `batch` where samples share microbatches and the script does not say that they
/// do, a phrase; empty: it is as it says.
[[nodiscard]] std::string packing_remark(const planner::Batch& batch, const TakenScript& script);

/// Puts what the launch of Megatron-LM or Megatron-Bridge in the script `plan.now` says in place of its name: degrees
/// and ZeRO stage, what the recipe keeps, layers of stages, order, recomputation, and, where options say none, tokens
/// and, of a data set, the number of microbatches. Throws Error{input} where an option says otherwise, and as
/// read_launch(); Error{limit} where Megatron Core does not construct it, with the rule. Pre: is_script(plan.now).
[[nodiscard]] TakenScript take_script(planner::PlanOptions& plan);

}  // namespace pipeweaver::launch
