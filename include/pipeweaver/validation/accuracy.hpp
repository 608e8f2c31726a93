// How right predictions are by device, number format and stack, and beside them those of another build.
//
// Error        predicted / measured - 1, as in run_errors.hpp.
// Stack        the recipe by which a row was predicted.
#pragma once

#include "pipeweaver/validation/run_errors.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::validation {

/// Rows of one device, number format, stack and kind of network.
struct StackErrors {
    std::string device, products, stack;
    bool experts = false, multimodal = false;
    std::size_t predicted = 0;       ///< now
    Errors now{};                    ///< of those that were measured
    Errors before{}, now_of_both{};  ///< of those that both builds predict
};

/// How far a row is off.
struct RowError {
    std::size_t row = 0;  ///< in the table
    double now = 0;
    std::optional<double> before{};
};

struct Accuracy {
    std::vector<StackErrors> stacks;     ///< in the order of device, format, stack and kind
    std::vector<StackErrors> devices{};  ///< all stacks together: `stack` is empty
    std::vector<RowError> rows{};        ///< measured and predicted now, the farthest first
    std::size_t predicted = 0;           ///< now
    /// Rows that one build alone predicts, in order.
    std::vector<std::size_t> now_alone{}, before_alone{};
};

/// The errors of `now`, and of `before`, what another build predicted of each row (seconds; nothing: refused). Pre: as
/// many as runs; `before` may be empty, which leaves out what is told of it.
[[nodiscard]] Accuracy accuracy_of(std::span<const PublishedRun> runs, std::span<const Prediction> now,
                                   std::span<const std::optional<double>> before = {});

/// Column predicted_step_time_s of a table that `pipeweaver validate RUNS.csv --out` of another build wrote for the
/// same runs. Throws Error{input} for a table of other runs, a missing column, and a cell that is no time.
[[nodiscard]] std::vector<std::optional<double>> predicted_before(const CsvTable& runs, const CsvTable& before);

}  // namespace pipeweaver::validation
