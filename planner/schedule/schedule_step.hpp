// The one way from a step to its schedule: policies, then a search of the step with whole backwards, with split ones or
// with both, on shared ports; then a choice among schedules that are about as good, and a lower peak. Plans, sessions,
// choices of partitions and packings, and targets all come through here; each says what of it is wanted.
//
// Determinism  Without an end in time a function of the arguments, but not of the executor.
#pragma once

#include "pipeweaver/emulator/step.hpp"
#include "pipeweaver/emulator/step_problem.hpp"
#include "pipeweaver/planner/job.hpp"
#include "pipeweaver/planner/robustness.hpp"
#include "pipeweaver/planner/time.hpp"
#include "pipeweaver/planner/tuning.hpp"
#include "planner/evaluate/step.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::planner {

/// Schedules of a step for a search to begin with, beside those of policies.
using MoreStarts = std::function<std::vector<schedule::Schedule>(const emulator::StepProblem&)>;

/// What is wanted of a step's schedule.
struct ScheduleWanted {
    std::optional<std::vector<std::string>> policies{};  ///< that are applied first; none: all of search::policies()
    search::BoundEffort bounds = search::BoundEffort::full;                        ///< of the search
    std::optional<search::BoundEffort> policy_bounds = search::BoundEffort::full;  ///< before it; none: what is known
    bool full_bounds_last = false;                                                 ///< after it, where time is left
    bool search = true;  ///< else the fastest policy's schedule is taken
    Split split = Split::automatic;
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> max_rounds{};  ///< of each search
    std::optional<search::Patience> patience = planner::patience;
    search::Rules rules{};  ///< that searches keep
    MoreStarts more{};
    ChoiceRule rule = no_choice;  ///< by which near schedules are handed over
    std::size_t problems = 1;     ///< between which the work of comparing them is shared out
    bool choose = false;          ///< one of the near schedules may be taken, and one with a lower peak
};

/// What every schedule of the job is searched like: its seed, rounds and choice of backwards to split.
[[nodiscard]] ScheduleWanted schedule_wanted(const Job& job);

/// A step and its schedule.
struct ScheduledStep {
    Step step{};
    search::Found found{};
    bool on_split = false;  ///< whether `found` is of the step with split backwards
    RobustChoice choice{};

    const partition::Partition& partition() const { return step.cut.partition; }
    const emulator::StepProblem& searched() const { return step.form(on_split); }

    /// What is short, or why else there is no schedule; empty where there is one.
    std::string why_no_schedule() const;

    /// Throws Error{limit} with that. Does nothing where there is a schedule.
    void require_schedule() const;
};

/// Schedules the step. Policies that were applied to it before are not applied again. Where their time ends before all
/// are, the search begins with those that are; where none is left for a search, the fastest of them is taken, or, where
/// one of the near schedules is chosen and the step is small enough for some, what one round makes of them.
/// `found` has no schedule where the step does not fit, or nothing was found.
[[nodiscard]] ScheduledStep schedule_step(Step step, const ScheduleWanted& wanted, const Executor& execute,
                                          const Time& time = {});

/// The schedule that a policy makes of the step, as if a search had found it, without the other policies. Pre: `run` is
/// one of the step's, and applies.
[[nodiscard]] ScheduledStep take_policy(const Step& step, const PolicyRun& run);

/// A step and its schedule as they are handed over.
struct FinishedStep {
    Cut cut;
    search::Found found;
    emulator::PortWaits waits{};
};

/// Joins backwards that need not be split, and gives the step the lags that its schedule leads to. Pre: found.schedule.
[[nodiscard]] FinishedStep finish(ScheduledStep scheduled);

/// The schedule of the smallest makespan, or another one near to it that stands up better to wrong costs: then `found`
/// is changed to it. No makespan becomes longer than `limit`, the fastest known schedule's. What is proven optimal is
/// given up only by a rule by median. Pre: found.schedule is of the step.
[[nodiscard]] RobustChoice choose(const emulator::StepProblem& step, search::Found& found,
                                  std::optional<Duration> limit, const ChoiceRule& rule, std::uint64_t seed,
                                  const Executor& execute);

/// A plan's second objective: makes the largest peak of `found` smaller, as a fraction of its rank's capacity, at the
/// same makespan or a shorter one: takes the least full of the alternatives that are as fast, then a few rounds of
/// annealing on it (search::lower_memory), a fixed number, so that rounds decide the result and the makespan keeps the
/// budget. Lower peaks use up slack: `found` stays as it was where the other schedule's median under wrong costs
/// (robustness.hpp) is longer by more than rule.within, or at all if the rule is by median; also where nothing is
/// gained, and where no time is left. `known` are policies' schedules of the step that keep the rules of `options`:
/// they count as alternatives. Pre: found.schedule, of `step`.
void lower_peak(const emulator::StepProblem& step, std::span<const search::FoundSchedule> known, search::Found& found,
                const search::Options& options, const ChoiceRule& rule, const Executor& execute, const Time& time);

}  // namespace pipeweaver::planner
