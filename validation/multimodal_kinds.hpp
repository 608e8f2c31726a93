// Runs of several networks, or of a generator, that sources publish: a table from what a row is called to what its
// columns do not hold.
#pragma once

#include "pipeweaver/emulator/stages.hpp"
#include "pipeweaver/validation/published_run.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace pipeweaver::validation {

/// In place of a data set: clips as long as the row's sequence.
inline constexpr std::string_view clips_of_the_row = "clips";
/// In place of a data set: images of the data that the row names, and text that fills its sequence.
inline constexpr std::string_view padded_to_the_row = "padded";

/// The first whose words the row has.
struct MultimodalKind {
    std::string_view name;          ///< part of the row's model: its letters and digits, in lower case
    std::string_view also = {};     ///< part of its source, model, gpu or note, in lower case; empty: anything
    std::string_view model;         ///< as --model takes it
    std::string_view dataset;       ///< as --dataset takes it, or clips_of_the_row
    std::string_view recipe = {};   ///< as --recipe takes it; empty: that of the source (stacks.hpp)
    std::int64_t samples = 0;       ///< of a microbatch; 0: the row's micro_batch
    std::int64_t lines = 1;         ///< samples that the row counts as one: of a packed sequence
    std::int64_t micro_batch = 0;   ///< where the row has none; 0: all of a replica at once
    std::string_view packing = {};  ///< as --packing takes it; empty: in given order
    std::optional<emulator::Recompute> recompute{};  ///< where the row says none; nothing: none
    std::string_view assumed = {};
};

/// The images of a data set that rows name.
struct NamedImages {
    std::string_view words;  ///< part of the row's note, in lower case
    std::string_view image;  ///< as --dataset takes it behind the text: "1x448px"
    std::string_view assumed;
};

/// Nothing: no kind has the row's words.
[[nodiscard]] const MultimodalKind* kind_of(const PublishedRun& row);

/// Nothing: the row names no data that is known.
[[nodiscard]] const NamedImages* images_of(const PublishedRun& row);

/// All kinds, for tests.
[[nodiscard]] std::span<const MultimodalKind> multimodal_kinds();

}  // namespace pipeweaver::validation
