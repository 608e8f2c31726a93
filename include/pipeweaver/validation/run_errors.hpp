// How far predictions of published runs are from what was measured, by source.
//
// Error        predicted / measured - 1, in percent. Mean, median and 90th percentile (nearest rank) are those of its
//              absolute value, the bias is the mean with its sign.
// Groups       by source, in the order of the table; what was predicted of a source by device and kind of network.
#pragma once

#include "pipeweaver/validation/published_run.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipeweaver::validation {

struct Errors {
    std::size_t rows = 0;  ///< predicted and measured; all figures are 0 without any
    double mean_percent = 0, median_percent = 0, p90_percent = 0, max_percent = 0, bias_percent = 0;
};

/// The errors of these values of predicted / measured - 1, which are fractions.
[[nodiscard]] Errors errors_of(std::vector<double> relative);

/// The measured step, seconds; of a row without one that was predicted, the step that its rate stands for: of tokens,
/// or of FLOPs, counted as the row says, multimodal ones that do not say as the model's own. Nothing: not measured, or
/// in FLOPs of a kind that nobody named or that are not known of the run.
[[nodiscard]] std::optional<double> measured_step(const PublishedRun& run, const Prediction& prediction);

/// Rows that were refused for one reason.
struct RefusedRows {
    std::string reason;
    std::size_t rows = 0;
};

/// Rows of a source that were predicted for one device and kind of network.
struct PredictedRows {
    std::string device;
    bool experts = false;  ///< a mixture of experts
    bool multimodal = false;
    std::size_t rows = 0;
    Errors step_time{}, memory{};
    std::array<Errors, 3> memory_of{};  ///< by emulator::MemoryKind
};

struct SourceErrors {
    std::string source;
    std::size_t rows = 0;  ///< all of the source
    std::vector<PredictedRows> predicted{};
    std::vector<RefusedRows> refused{};  ///< most frequent first

    std::size_t refused_rows() const;
};

/// The errors of each source, in the order of the table. Pre: as many predictions as runs.
[[nodiscard]] std::vector<SourceErrors> errors_by_source(std::span<const PublishedRun> runs,
                                                         std::span<const Prediction> predictions);

/// The errors of all sources together. Pre: as many predictions as runs.
[[nodiscard]] std::vector<PredictedRows> errors_of_all(std::span<const PublishedRun> runs,
                                                       std::span<const Prediction> predictions);

/// Two rows of which one's step was measured against the other's.
struct StepRatio {
    std::string id, against;
    double measured = 1;
    std::optional<double> predicted{};  ///< nothing: one of them was refused

    bool same_sign() const;  ///< both are longer, or both shorter
};

/// All that are measured: as the row's step_ratio, else by both steps. In the order of the table. Throws Error{input}
/// for a row that names another which the table lacks. Pre: as many predictions as runs.
[[nodiscard]] std::vector<StepRatio> ratios_of(std::span<const PublishedRun> runs,
                                               std::span<const Prediction> predictions);

}  // namespace pipeweaver::validation
