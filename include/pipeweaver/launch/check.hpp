// Will a launch construct, does it fit, and which known hazards has it.
//
// Determinism  A function of the launch, what is asked and the seed.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/launch/fit.hpp"
#include "pipeweaver/launch/hazards.hpp"
#include "pipeweaver/launch/model.hpp"
#include "pipeweaver/launch/rules.hpp"
#include "pipeweaver/launch/said.hpp"
#include "pipeweaver/launch/verdict.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pipeweaver::launch {

struct CheckAsked {
    SaidLaunch said;
    std::string cluster;      ///< "h100-sxm:64"
    std::string framework{};  ///< of frameworks(); empty: the first that has the dialect
    std::string model{};      ///< as find_model() takes it; empty: what the launch says
    AskedEncoders encoders{};
    std::string dataset{}, recipe{};
    std::int64_t seed = 1;
    bool fits = true;        ///< whether it is asked for
    std::string batch{};     ///< a file of samples, in place of a data set
    std::string assigned{};  ///< an assignment.json of these samples; empty: packed and handed out as they come
    std::shared_ptr<const planner::Anchor> anchor{};  ///< a measured launch that corrects memory; null: none
};

/// What a group of GPUs holds, whose modules have these alone.
struct GroupUse {
    std::string name;  ///< "vit"
    std::int64_t first_gpu = 0, tp = 1, cp = 1, pp = 1, dp = 1;
    std::string recompute;
    Bytes peak{};  ///< of the fullest GPU

    std::int64_t gpus() const { return tp * cp * pp * dp; }
};

struct Checked {
    std::optional<Verdict> verdict;    ///< none: it constructs, and what fits is not asked for
    std::vector<Open> open;            ///< what an undecided verdict rests on
    std::optional<MemoryError> error;  ///< of our memory model, beside `fit`
    std::string entry;                 ///< the way in whose defaults count: "ms-swift"; empty: the framework's own
    const Framework* framework = nullptr;
    Dialect dialect = Dialect::megatron_arguments;
    std::string from, cluster;
    std::int64_t gpus = 0;
    std::string conflict;  ///< the launch is for another number of GPUs, which it says; empty: it says none or these
    std::vector<std::pair<std::string, std::int64_t>> degrees;  ///< "tp" 4, ..., "microbatches" 16
    std::vector<std::int64_t> layers;                           ///< of the language model, by stage; empty: not known
    std::vector<BrokenRule> broken;                             ///< where it is undecided, by the framework's defaults
    std::optional<Fit> fit;  ///< likewise; none: not asked for, a rule is broken, or a size is not said
    /// Of modules on GPUs of their own, whose pipeline ranks `fit` has one group after the other; else none.
    std::vector<GroupUse> groups{};
    std::vector<Change> changes;
    std::vector<Hazard> hazards;
    std::vector<std::string> assumed;   ///< sentences
    std::vector<std::string> not_read;  ///< settings that are passed over
    std::vector<std::string> quiet;     ///< of these, what says nothing of layout, model or memory, as far as known

    bool constructs() const { return broken.empty(); }
};

/// Throws Error{input} for what is malformed, contradicts itself, or lacks a size, naming the setting; Error{limit}
/// where what fits cannot be answered; Error{io}.
[[nodiscard]] Checked check(const CheckAsked& asked, const Executor& execute);

}  // namespace pipeweaver::launch
