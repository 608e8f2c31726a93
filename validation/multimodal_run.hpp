// Published runs of several networks, or of one that is no language model: the columns hold one of its networks, and the
// rest is what the source says of it.
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

/// Whether the row is of this kind; the refusal says why such a row is none that is known.
struct MultimodalRow {
    std::optional<MultimodalRun> run;
    std::string refusal;
};
[[nodiscard]] bool is_multimodal(const PublishedRun& row);
[[nodiscard]] MultimodalRow multimodal_run(const PublishedRun& row);

}  // namespace pipeweaver::validation
