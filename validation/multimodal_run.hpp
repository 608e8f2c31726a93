// Published runs of several networks, or of one that is no language model: the columns hold one of its networks, and
// the rest is what the source says of it (multimodal_kinds.hpp).
#pragma once

#include "pipeweaver/emulator/recipe.hpp"
#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/validation/published_run.hpp"
#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pipeweaver::validation {

/// What the row's name and source stand for.
struct MultimodalRun {
    workloads::Model model;                    ///< a microbatch holds `samples`
    std::string dataset;                       ///< as --dataset takes it
    std::optional<emulator::Recipe> recipe{};  ///< none: that of the source
    std::string packing{};                     ///< as --packing takes it
    emulator::Recompute recompute{};
    std::string layers{};      ///< as --layers takes it; empty: no pipeline
    std::int64_t samples = 0;  ///< of a microbatch
    std::int64_t lines = 1;    ///< samples that the row counts as one: of a packed sequence
    std::vector<std::string> assumed{};
};

/// The run, or why it is refused.
struct MultimodalRow {
    std::optional<MultimodalRun> run;
    std::string refusal;
};

/// Whether source, model or note of the row say so, or a kind has its words.
[[nodiscard]] bool is_multimodal(const PublishedRun& row);

/// What is known of such a run beside the columns. Pre: is_multimodal(row).
[[nodiscard]] MultimodalRow multimodal_run(const PublishedRun& row);

/// The layers of the pipeline's stages that a note says, "17/23" or "9|15|15|13": as many numbers as `stages`, which
/// together are `layers`. Empty: it says none.
[[nodiscard]] std::vector<std::int64_t> split_in(std::string_view note, std::int64_t stages, std::int64_t layers);

}  // namespace pipeweaver::validation
