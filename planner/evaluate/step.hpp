// The one way from a partition to what is known of its step before any search: microbatches are cut into units, the
// step is built, backwards are split where that may pay, the makespan is bounded, and policies are applied.
//
// Ports        Policies decide as if every transfer went at once, and so do searches; what they decided is replayed on
//              shared ports (emulator/ports.hpp), here and wherever else the planner replays a schedule. The steps keep
//              the lags of transfers that go at once until a schedule is final (settle()).
//
// Buckets      Where gradients are reduced in buckets beside backwards, policies and searches know no more of it than
//              that it takes time. How much, each schedule's own replay tells; that is what policies are held by.
//
// Determinism  A function of the arguments: not of the executor, and not of what the setup's store knows.
#pragma once

#include "pipeweaver/base/parallel.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/targets.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "pipeweaver/search/bounds.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::planner {

using Microbatches = std::vector<workloads::Microbatch>;  ///< of one replica

/// Those of a replica's share, by their places among all.
[[nodiscard]] Microbatches of_share(const Microbatches& all, const std::vector<std::size_t>& share);

/// Those of each replica's share.
[[nodiscard]] std::vector<Microbatches> of_shares(const Microbatches& all, const partition::Shares& shares);

/// The microbatches of all replicas, one replica after the other.
[[nodiscard]] Microbatches together(const std::vector<Microbatches>& replicas);

/// The places of the largest first; ties go to the earlier.
[[nodiscard]] std::vector<std::size_t> largest_first(const std::vector<Duration>& values);

/// The place of the replica with the microbatch that holds most; ties go to the earlier.
[[nodiscard]] std::size_t fullest(const std::vector<Microbatches>& replicas);

/// Whether the target pads microbatches in the layout: shapes are fixed where stages are sent them, in a pipeline.
[[nodiscard]] bool pads(const Target& target, const emulator::Layout& layout);

/// Replicas' microbatches as the target runs them: where it pads, to the largest of all of them, as a job's one
/// configuration says one length for every replica.
[[nodiscard]] std::vector<Microbatches> as_run_by(const Target& target, const emulator::Layout& layout,
                                                  std::vector<Microbatches> replicas);

/// What a replica's problem on a partition is called.
[[nodiscard]] std::string problem_name(const emulator::Setup& setup, const partition::Partition& partition,
                                       std::size_t replica);

/// How a step is to be built.
struct StepWanted {
    std::string name;
    const Target* target = &targets().front();
    std::vector<emulator::Recompute> menu{};  ///< memory modes of every pass; none: the partition's
    /// Each rank has this one in place of the menu; none: all have the menu.
    std::vector<emulator::Recompute> mode_of_rank{};
    std::size_t replica = 0;
    std::optional<Bytes> capacity{};          ///< of every rank; none: capacity_of(setup)
    bool priced_split = true;                 ///< false: no backward will be split
    std::optional<std::size_t> most_tasks{};  ///< of more the batch is refused
};

using Units = std::vector<std::vector<std::vector<emulator::Unit>>>;  ///< per microbatch, per chain

/// `input` with all that is wanted of its step.
[[nodiscard]] emulator::StepInput as_wanted(emulator::StepInput input, const StepWanted& wanted);

/// Why a replica of so many microbatches cannot be planned in minutes: its tasks. None: it can.
[[nodiscard]] std::optional<std::string> why_not_plannable(std::size_t microbatches, std::size_t tasks,
                                                           std::size_t most = sizes.tasks);

/// Throws Error{input} with that.
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

/// A partition of one replica's microbatches, and what is known of it before any search.
struct Step {
    emulator::StepInput input{};                         ///< what it is built from; its setup must outlive it
    Cut cut{};                                           ///< with whole backwards; its units are those of `input`
    std::optional<emulator::MemoryShortage> shortage{};  ///< then `cut` has no step, and nothing below is known
    std::optional<std::string> inexpressible{};          ///< a rule of the target that the step breaks: the same
    std::optional<emulator::StepProblem> split{};        ///< the step with split backwards, once that is asked for
    search::Bound bound{};                               ///< of every schedule, with backwards split or not
    std::vector<PolicyRun> policies{};                   ///< of those wanted, in the order of search::policies()

    /// The step with whole backwards, or with split ones. Pre: it has that form.
    const emulator::StepProblem& form(bool on_split) const { return on_split ? *split : cut.step; }

    std::size_t tasks() const { return cut.step.problem.tasks.size(); }  ///< with whole backwards

    /// What the policy makes of the step; null: it was not wanted.
    const PolicyRun* run(std::string_view policy) const;

    /// The fastest policy that applies, or null; ties go to the smaller peak, then to the earlier.
    const PolicyRun* fastest() const;

    /// Whether some policy was left out for lack of time.
    bool lacks_policies() const;
};

/// Builds the step of one replica's microbatches, and applies nothing to it. Throws Error{input} where it has more
/// tasks than are wanted.
[[nodiscard]] Step build(const emulator::Setup& setup, const partition::Partition& partition,
                         const Microbatches& microbatches, const StepWanted& wanted);

/// Builds the step of units that the partition's microbatches were cut into.
[[nodiscard]] Step build(const emulator::Setup& setup, const partition::Partition& partition, Units units,
                         const StepWanted& wanted);

/// The cut with its units.
[[nodiscard]] Cut take_cut(Step step);

/// Gives a step the lags and tails that its final schedule leads to; the replay and the waits are those of a step that
/// has them. Pre: `step` is a form of the one that was built from `input`, and the schedule completes on it.
emulator::PortReplay settle(const emulator::StepInput& input, emulator::StepProblem& step,
                            const schedule::Schedule& schedule);

/// How the schedule runs on the step, as settle() would have it, in either form.
[[nodiscard]] emulator::PortReplay replay_in_full(const Step& step, bool on_split, const schedule::Schedule& schedule);

/// The best bound that holds for every schedule of the step; where backwards may be split and some can be, whichever of
/// them are.
[[nodiscard]] search::Bound bound_of(const Step& step, bool may_split,
                                     search::BoundEffort effort = search::BoundEffort::full);

/// What policies a step is to have.
struct PoliciesWanted {
    bool split = true;  ///< policies and the bound may split backwards
    std::optional<search::BoundEffort> bound = search::BoundEffort::full;  ///< none: the bound stays as it is
    std::optional<std::vector<std::string>> policies{};                    ///< none: all of search::policies()
    Time time{};                ///< asked before every policy once one applies
    bool one_anyhow = true;     ///< until one applies, `time` is not asked
    bool mode_by_rank = false;  ///< every rank has a memory mode of its own. Pre: all wanted policies have fixed orders
};

/// Adds bound and policies, in parallel, to a step that fits and that its target can run. What was applied before stays
/// as it is.
void apply_policies(Step& step, const PoliciesWanted& wanted, const Executor& execute = in_order);

/// Builds the step and applies policies to it.
[[nodiscard]] Step evaluate(const emulator::Setup& setup, const partition::Partition& partition,
                            const Microbatches& microbatches, const StepWanted& step, const PoliciesWanted& wanted,
                            const Executor& execute = in_order);

/// What every policy, or every one of a fixed order, makes of a problem that no partition made, as it is.
[[nodiscard]] std::vector<PolicyRun> policies_of(const schedule::Problem& problem, const Executor& execute,
                                                 bool fixed_orders_alone = false);

}  // namespace pipeweaver::planner
