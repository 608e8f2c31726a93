// The one way from a partition to what is known of it: microbatches are cut into units, the step is built, backwards are
// split where that may pay, the makespan is bounded, and policies are applied. Plans, targets, trials of layouts, needs,
// emulations and given schedules all come through here.
//
// Ports        Policies decide as if every transfer went at once, and so do searches; what they decided is replayed on
//              shared ports (emulator/ports.hpp), here and wherever else the planner replays a schedule. The steps keep
//              the lags of transfers that go at once until a schedule is final (set_lags()).
//
// Determinism  A function of the arguments: not of the executor, and not of what the setup's store knows.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/request.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/search/bounds.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::planner {

using Microbatches = std::vector<workloads::Microbatch>;  ///< of one replica

/// What a replica's problem on a partition is called.
[[nodiscard]] std::string problem_name(const emulator::Setup& setup, const partition::Partition& partition,
                                       std::size_t replica);

/// How a step is to be built.
struct StepWanted {
    std::string name;
    const Target* target = &targets().front();
    std::vector<emulator::Recompute> menu{};  ///< memory modes of every pass; none: the partition's
    std::vector<emulator::Recompute>
        mode_of_rank{};  ///< each rank has this one in place of the menu; none: all have it
    std::size_t replica = 0;
    std::optional<Bytes> capacity{};  ///< of every rank; none: capacity_of(setup)
    bool priced_split = true;         ///< false: no backward will be split
};

using Units = std::vector<std::vector<std::vector<emulator::Unit>>>;  ///< per microbatch, per chain

/// What a step is built from. Pre: `setup` outlives it.
[[nodiscard]] emulator::StepInput step_input(const emulator::Setup& setup, const partition::Partition& partition,
                                             Units units, const StepWanted& wanted);

/// Throws Error{input} where a replica of so many microbatches has more tasks than can be planned in minutes.
void require_plannable(std::size_t microbatches, std::size_t tasks, std::size_t most = sizes.tasks);

/// Forwards and backwards of all units, counted before anything of that size is built.
[[nodiscard]] std::size_t count_tasks(const partition::Partition& partition, const Units& units);

/// The step with every backward split that can be; none: there is none, some rank could not run one even alone, or the
/// problem would have too many tasks.
[[nodiscard]] std::optional<emulator::StepProblem> split_step(const emulator::StepProblem& whole);

/// A bound on the step whichever of its backwards are split: of all split, with no more time and memory than whole ones
/// take. Why it holds: with I and W shortened until they take as long as B together, a schedule with some backwards
/// whole is one with all split and W directly after I, but for memory: I takes more transient memory than B. With that
/// of B it keeps every limit.
/// Pre: `split` = split_step(whole).
[[nodiscard]] search::Bound bound_of_every_choice(const emulator::StepProblem& whole,
                                                  const emulator::StepProblem& split,
                                                  search::BoundEffort effort = search::BoundEffort::full);

/// That, where backwards may be split and some can be; else the best bound of the step as it is.
[[nodiscard]] search::Bound bound_of(const emulator::StepProblem& whole, bool may_split,
                                     search::BoundEffort effort = search::BoundEffort::full);

/// A partition of one replica: what is known of it before any search.
struct Evaluation {
    Cut cut;
    std::optional<emulator::MemoryShortage> shortage{};  ///< then `cut` has no step, and nothing below is known
    std::optional<std::string> inexpressible{};          ///< a rule of the target that the step breaks: the same
    std::optional<emulator::StepProblem> split{};        ///< the step with split backwards, if it was to be kept
    search::Bound bound{};                               ///< of every schedule, with backwards split or not
    std::vector<PolicyRun> policies{};                   ///< of those wanted, in the order of search::policies()

    const PolicyRun* run(std::string_view policy) const;  ///< null: it was not wanted

    /// The fastest that applies, or null; ties go to the earlier.
    const PolicyRun* fastest() const;
};

/// What of a step is wanted.
struct EvaluationWanted {
    bool split = true;  ///< policies and the bound may split backwards
    bool keep_split = false;
    std::optional<search::BoundEffort> bound = search::BoundEffort::full;  ///< none: no bound
    std::optional<std::vector<std::string>> policies{};                    ///< none: all of search::policies()
    Time time{};                ///< asked before every policy once one applies
    bool one_anyhow = true;     ///< until one applies, `time` is not asked
    bool mode_by_rank = false;  ///< every rank has a memory mode of its own. Pre: all wanted policies have fixed orders
};

/// The step alone: neither bound nor policies.
[[nodiscard]] Evaluation build(const emulator::Setup& setup, const partition::Partition& partition, Units units,
                               const StepWanted& step);

/// Adds bound and policies, in parallel, to a step that fits and that its target can run. What was applied before stays as
/// it is.
void judge(Evaluation& known, const EvaluationWanted& wanted, const Executor& execute = in_order);

/// Both.
[[nodiscard]] Evaluation evaluate(const emulator::Setup& setup, const partition::Partition& partition, Units units,
                                  const StepWanted& step, const EvaluationWanted& wanted,
                                  const Executor& execute = in_order);

/// All policies on a problem that no partition made, as it is.
[[nodiscard]] std::vector<PolicyRun> apply_policies(const schedule::Problem& problem, const Executor& execute);

}  // namespace pipeweaver::planner
