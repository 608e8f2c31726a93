// A row of a study: a cell's best point, with its pace, its days and its price.
#pragma once

#include "pipeweaver/capacity/cell.hpp"
#include "pipeweaver/capacity/faults.hpp"
#include "pipeweaver/planner/training_cost.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>

namespace pipeweaver::capacity {

/// A step in the units of the field, with all GPUs of its cell.
struct Pace {
    double tokens_per_second = 0, tokens_per_second_per_gpu = 0, samples_per_second = 0, tflops_per_gpu = 0, mfu = 0;
    std::optional<planner::TrainingCost> run;  ///< the whole training; none: its tokens are not said
};

[[nodiscard]] Pace pace_of(const Study& study, const Cell& cell, const CellFacts& facts, Duration step);

/// What a search made of a row.
struct Planned {
    Duration step{};
    std::string partition{};
    Bytes memory{};                                                      ///< peak of the fullest GPU
    double gap = 0;                                                      ///< of its makespan over the bound
    double exact = 0, interpolated = 0, extrapolated = 0, modelled = 0;  ///< parts of the busy time, by basis
};

struct Row {
    std::size_t cell = 0;   ///< its place among Study::cells, and among the results
    std::size_t point = 0;  ///< among the cell's points
    Duration flags_step{};  ///< under the best schedule that launch flags can say; of a planned row judged closely
    std::optional<Planned> planned{};
    std::string why_not_planned{};  ///< not empty: a search was to plan it and could not, and why
    Pace pace{};                    ///< of step()
    Bytes memory_left{};            ///< on the fullest GPU
    double error_percent = 0;       ///< of the step
    bool modelled = false;          ///< its device is known by its peaks alone
    bool meets = true;              ///< the constraints
    bool at_risk = false;           ///< it meets them, but would not if the step were longer by its error
    bool on_front = false;
    bool is_tied = false;                  ///< with the cheapest (without prices: with the fewest GPU-hours or GPUs)
    std::optional<FaultColumns> faults{};  ///< of its GPUs in tensor parallel groups; none: not asked, or not known
    std::string command{};                 ///< `pipeweaver plan` of it

    /// The shorter of both.
    Duration step() const { return planned ? std::min(planned->step, flags_step) : flags_step; }
};

}  // namespace pipeweaver::capacity
