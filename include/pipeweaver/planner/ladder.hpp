// The ladder: what a job's users run now, and what each next step gains, the easiest first.
//
//   now        what they run: --now, or else the best that is known today, the fastest that the target launches in this
//              layout; with samples packed as they come, or as --now says, and shared out in turn
//   data       the same, with samples packed and shared out among the replicas by cost: a sampler is all that it needs
//   flags      another cut, more or fewer chunks, other recomputation, as far as the target's launch flags can say
//   layout     another layout, or no pipeline, on the same GPUs for the same samples, as launch flags can run it; of
//              all that fit the best few
//   schedule   the searched order, in a runtime that takes it
//
// Beyond these: what the target does not launch and is faster than all; of a target with groups their rung
// (groups_rung), faster or not. One that the target launches is advised where it is worth its change (worth.hpp).
//
// No rung is slower than the one before it: one that gains nothing has the step of that one and says why. Steps of the
// first four are what `emulate` prints under their commands, to the nanosecond.
//
// Determinism  A function of the arguments but for what time leaves out.
#pragma once

#include "pipeweaver/partition/said_layers.hpp"
#include "pipeweaver/planner/opponents.hpp"
#include "pipeweaver/planner/plan_parts.hpp"
#include "pipeweaver/planner/rung.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::planner {

/// What a job's users say that they run; what they leave out is chosen.
struct NowWanted {
    std::string partition, policy;
    std::optional<StepRecompute> recompute;
    std::optional<std::int64_t> chunks;
    std::optional<workloads::Packing> packing;  ///< none: the first of the packings that there are
    partition::SaidLayers layers;               ///< none: as the partition cuts
    std::optional<std::int64_t> cp;             ///< context parallel GPUs of all other layouts; none: any
    std::string remark{};                       ///< where what runs may be other than that, a phrase
};

/// Parses "first-stage,1f1b,blocks:8,chunks:2,packing:ffd", in any order, and --layers; either may be empty. Throws
/// Error{input} for a word that is none of a partition, a policy, a recomputation, chunks:N and packing:WAY, or of
/// which there are two.
[[nodiscard]] NowWanted parse_now(const std::string& text, const std::string& layers);

/// A plan's batch, packed as the data rung packs it, and the rungs below the plan.
struct LadderStart {
    Request request;
    bool now_is_said = false;  ///< else what is run now is not known, and is the best that is
    std::optional<Rung> now{}, data{};
    std::optional<Rung> flags{};          ///< in the user's own layout, where that is not the request's
    Opponents opponents{};                ///< chosen for `request`, and what is launched in other layouts
    std::size_t layouts = 0;              ///< that fit; none: there was no time to compare them
    std::vector<std::string> left_out{};  ///< for lack of time
    std::string why_none{};               ///< not empty: nothing that the target launches runs the batch as it is
    /// Then, of a target for which no order is searched: the fastest that it launches in another layout of the same
    /// GPUs, which is the request's.
    std::optional<Rung> layout{};
};

/// Finds what is run now and how its samples are packed best. `packings`: the same samples, as they come and in the
/// other ways that are allowed; `own`: the same in the user's own layout, which now, data and flags are of, or none
/// where it is the same. `time`: of the whole plan. What is said to be run is among the opponents. Throws Error{input}
/// where what is said does not apply, Error{limit} where it does not fit, or where no order is searched for the job's
/// target and nothing that it launches fits in any layout.
[[nodiscard]] LadderStart begin_ladder(std::vector<Request> packings, const std::vector<Request>& own,
                                       const NowWanted& wanted, const Executor& execute, const Time& time,
                                       const OnDoing& on = {}, const OnLadder& on_ladder = {});

/// The rungs that flags launch, of the ladder of a plan that is held against these: all but the schedule. A plan makes
/// them before it searches an order (Wanted::start).
[[nodiscard]] Ladder launched_rungs(const LadderStart& start, const Baselines& baselines, const Executor& execute);

/// The ladder of a plan of start.request with start.opponents. Once `time` is over modules are not tried on GPUs of
/// their own. The rungs that flags launch are the plan's, if it was made with `start`.
[[nodiscard]] Ladder ladder_of(const LadderStart& start, const Plan& plan, const Executor& execute,
                               const Time& time = {});

/// The request's loader against the step of the rung that is advised in the plan's ladder, or, without a ladder,
/// against the plan's: as `emulate` replays it. Of a plan's own schedule those replicas that it remembers, of one that
/// a target has the one that it was made on. Pre: there is a loader.
[[nodiscard]] Input input_of_advised(const Request& request, const Plan& plan, const Executor& execute);

}  // namespace pipeweaver::planner
