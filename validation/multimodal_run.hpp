// Published runs of several networks, or of one that is no language model: the columns hold one of its networks, and
// the rest is what the source says of it.
#pragma once

#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/validation/published_run.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::validation {

/// What the row's name and source stand for.
struct MultimodalRun {
    workloads::Model model;  ///< a microbatch holds `samples`
    std::string dataset;     ///< every sample alike: constant-...
    emulator::Recipe recipe;
    std::int64_t samples = 0;  ///< of a microbatch
    std::int64_t lines = 1;    ///< samples that the row counts as one: of a packed sequence
    std::vector<std::string> assumed;
};

/// The run, or why it is refused.
struct MultimodalRow {
    std::optional<MultimodalRun> run;
    std::string refusal;
};

/// Whether source, model or note of the row say so.
[[nodiscard]] bool is_multimodal(const PublishedRun& row);

/// By the model's name: what is known of such runs beside the columns. Pre: is_multimodal(row).
[[nodiscard]] MultimodalRow multimodal_run(const PublishedRun& row);

}  // namespace pipeweaver::validation
