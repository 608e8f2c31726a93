// What the points of a study mean for who pays: each cell's best layout with its days and its price, those that meet
// the constraints, the fewest GPUs, the cheapest and the fastest of them, and what the costs' own errors cannot tell
// apart.
//
//   row     the fastest point of a cell, with its pace, its days and its price
//   front   rows than which none is both sooner and cheaper; without a price GPU-hours stand for it, without a run's
//           tokens GPU time
//   tied    a row that is as good as the best of its kind within the errors of both
//
// Determinism  A function of the study and the results of its cells.
#pragma once

#include "pipeweaver/capacity/cell.hpp"
#include "pipeweaver/capacity/faults.hpp"
#include "pipeweaver/planner/training_cost.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::capacity {

/// A step in the units of the field, with all GPUs of its cell.
struct Pace {
    double tokens_per_second = 0, tokens_per_second_per_gpu = 0, samples_per_second = 0, tflops_per_gpu = 0, mfu = 0;
    std::optional<planner::TrainingCost> run;  ///< the whole training; none: its tokens are not said
};

[[nodiscard]] Pace pace_of(const Study& study, const Cell& cell, const CellFacts& facts, Duration step);

/// What feeds a row's GPUs, where its cell has a loader: as that is, not as it would be enough.
struct RowInput {
    Duration waits{};                              ///< of each step, beside what its GPUs take alone
    std::int64_t cores = 0;                        ///< of all replicas' workers
    std::string decides{};                         ///< a stage of the loader; empty: nothing waits
    std::optional<std::int64_t> enough_workers{};  ///< of each replica; none: no number of them is
    std::string why_not{};                         ///< not empty, and no more known: it cannot be replayed
};

/// What a search made of a row.
struct Planned {
    Duration step{};                ///< without what is waited for samples
    std::optional<Duration> far{};  ///< its far end, as Point has it
    std::optional<RowInput> input{};
    std::string partition{};
    Bytes memory{};                                                      ///< peak of the fullest GPU
    double gap = 0;                                                      ///< of its makespan over the bound
    double exact = 0, interpolated = 0, extrapolated = 0, modelled = 0;  ///< parts of the busy time, by basis
};

/// A cell's fastest launch by flags alone, where a row is in another layout.
struct LaunchedElsewhere {
    std::size_t point = 0;  ///< among the cell's points
    Duration step{};        ///< judged as closely as planned rows are, without what is waited for samples
};

struct Row {
    std::size_t cell = 0;   ///< its place among Study::cells, and among the results
    std::size_t point = 0;  ///< among the cell's points
    Duration flags_step{};  ///< under the best schedule that launch flags can say; of a planned row judged closely;
                            ///< without what is waited for samples
    std::optional<Duration> flags_far{};  ///< its far end, as Point has it
    std::optional<RowInput> input{};      ///< of that step
    std::optional<Planned> planned{};
    std::optional<LaunchedElsewhere> elsewhere{};  ///< where the layout is a search's best, and not that of flags
    std::string why_not_planned{};                 ///< not empty: a search was to plan it and could not, and why
    Pace pace{};                                   ///< of step()
    std::int64_t cores_bought = 0;                 ///< CPU cores beside those that GPUs come with
    double usd_of_cores = 0;                       ///< of the whole run, in its price
    Bytes memory_left{};                           ///< on the fullest GPU
    double error_percent = 0;                      ///< of the step
    bool modelled = false;                         ///< its device is known by its peaks alone
    bool meets = true;                             ///< the constraints
    bool at_risk = false;  ///< it meets them, but would not if the step were longer by its error
    bool on_front = false;
    bool is_tied = false;                  ///< with the cheapest (without prices: with the fewest GPU-hours or GPUs)
    std::optional<FaultColumns> faults{};  ///< of its GPUs in tensor parallel groups; none: not asked, or not known
    std::string command{};                 ///< `pipeweaver plan` of it

    /// The shorter of both, with what GPUs wait in it.
    Duration step() const { return is_planned() ? planned_step() : flags_step + waits_of(input); }

    /// The far end of that step, where layers are launched kernel by kernel; none: none is to be told.
    std::optional<Duration> far() const {
        const auto& end = is_planned() ? planned->far : flags_far;
        return end && *end > step() ? end : std::nullopt;
    }

    /// Of that step; null: the cell has no loader.
    const RowInput* fed() const {
        const auto& of = is_planned() ? planned->input : input;
        return of ? &*of : nullptr;
    }

private:
    static Duration waits_of(const std::optional<RowInput>& of) { return of ? of->waits : Duration{}; }
    Duration planned_step() const { return planned->step + waits_of(planned->input); }
    bool is_planned() const { return planned && planned_step() < flags_step + waits_of(input); }
};

/// The rows that answer; places among Ranking::rows.
struct Answers {
    std::optional<std::size_t> fewest, cheapest, fastest;

    /// Each place once, in this order.
    std::vector<std::size_t> places() const;
};

struct Ranking {
    std::vector<Row> rows;    ///< those that meet the constraints first, each part the cheapest first
    Answers answers;          ///< of those that meet the constraints
    std::string none_meets;   ///< not empty: no row does; the nearest, and which constraint binds
    bool has_prices = false;  ///< every row's run has a price
    std::size_t judged = 0, bounded = 0, refused = 0;  ///< points
};

/// Ranks the cells' best points. Pre: results are of all cells, in order.
[[nodiscard]] Ranking rank(const Study& study, const std::vector<CellResult>& results);

/// Plans rows with searches: the answers, then the best others, `study.planned` in all; ranks again until the answers
/// are planned. `time` ends it early: what is left keeps its flags' step.
void plan_best(const Study& study, const std::vector<CellResult>& results, Ranking& ranking, const Executor& execute,
               const planner::Time& time, const std::function<void(std::size_t done, std::size_t of)>& on_done = {});

}  // namespace pipeweaver::capacity
