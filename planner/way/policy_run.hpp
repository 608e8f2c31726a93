// One replica's step under a known policy, run with one recomputation after another.
//
// Pruning      Under a fixed order more blocks that run again make no task shorter, so of blocks:N only the smallest N
//              that every rank has room for is worth running; it is found by memory alone. On shared ports a longer
//              task can, rarely, make a schedule shorter (emulator/ports.hpp); such a gain is not looked for. Policies
//              whose order times decide are run with every setting.
// Determinism  A function of the arguments.
#pragma once

#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/planner/way.hpp"
#include "pipeweaver/search/policies.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {

class StepUnderPolicy {
public:
    /// Pre: the step was built with `settings` as its modes, and is split where the policy needs it; both outlive it.
    /// Throws Error{input} for an unknown policy.
    StepUnderPolicy(const emulator::StepProblem& step, std::string_view policy,
                    const std::vector<emulator::Recompute>& settings);

    /// Why the policy does not apply, or the setting that was run last does not fit; empty: it runs.
    const std::string& why_not() const { return why_not_; }

    /// What the setting that was run last is short of, at the task that it came to a stop at; 0: it runs, or what keeps
    /// it from running is not memory.
    Bytes short_by() const { return short_by_; }

    /// Whether the policy has a fixed order, which every rank can run with a setting of its own.
    bool has_order() const { return has_order_; }

    /// None: the setting does not fit, or is not there: not among the settings, or by rank without a fixed order.
    [[nodiscard]] std::optional<ReplicaRun> run(const StepRecompute& setting);

    /// The place among the settings of blocks:N with the smallest N that fits; none: none does. Pre: has_order().
    [[nodiscard]] std::optional<std::size_t> fewest_blocks() const;

    /// The largest peak of the run as a fraction of its rank's capacity.
    [[nodiscard]] double fullness(const ReplicaRun& run) const;

private:
    std::optional<ReplicaRun> uniform(std::size_t setting);
    std::optional<ReplicaRun> taken(search::PolicyResult result);

    const emulator::StepProblem& step_;
    std::string policy_;
    const std::vector<emulator::Recompute>& settings_;
    schedule::Replayer replayer_;
    bool has_order_;
    search::PolicyOrder order_;
    std::string why_not_;
    Bytes short_by_{};
};

}  // namespace pipeweaver::planner
