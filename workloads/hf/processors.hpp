// The files of image processors that lie beside a config.json: what they say of how images become tokens.
//
// Read     preprocessor_config.json, and processor_config.json with its object image_processor. The file for videos
//          and the object video_processor are read for models whose videos are (hf/videos.hpp), of others only patches
//          are compared.
// Lenient  about all else, as with configurations.
// Source   image_processing_*.py of huggingface/transformers; image_processing_kimi_vl.py of moonshotai/Kimi-VL.
#pragma once

#include "workloads/hf/part.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

namespace pipeweaver::workloads::hf {

struct Processors {
    std::vector<Part> images, videos;  ///< objects of the files, in the order in which they are asked
};

/// The files that lie beside `config`; none where it is no config.json. Throws Error{input}, Error{io}.
[[nodiscard]] std::vector<JsonDocument> read_processors(const std::filesystem::path& config);

/// Their objects. Both arguments must outlive the result.
[[nodiscard]] Processors processors_of(const std::vector<JsonDocument>& documents, Reading& reading);

/// Pixels of a side: 14, [14, 14] or {"height":14,"width":14}; nothing where the key is missing or says another thing
/// (the shortest edge). Throws Error{input} for what is no square.
[[nodiscard]] std::optional<std::int64_t> side_of(const Part& part, const Key& key);

/// A member of an object inside, size.longest_edge.
[[nodiscard]] std::optional<Json> inside(const Part& part, const Key& object, const Key& key);

/// What a processor says of the least and the most pixels: min_pixels, else size.shortest_edge, and the like.
[[nodiscard]] std::optional<Json> least_pixels(const Part& part);
[[nodiscard]] std::optional<Json> largest_pixels(const Part& part);

/// Where a processor says a quantity, and the quantity.
struct Said {
    Json place;
    std::int64_t value;
};

/// What the processors say, one after the other. Throws Error{input} where two say different things.
[[nodiscard]] std::optional<Said> said_by(const std::vector<Part>& processors,
                                          const std::function<std::optional<Json>(const Part&)>& find,
                                          std::int64_t largest);

/// What encoders cut images into.
struct Patches {
    std::int64_t side = 0, merge = 0, frames = 0;
};

/// Throws Error{input} unless all processors have these patches.
void require_patches(const Processors& processors, const Patches& patches);

}  // namespace pipeweaver::workloads::hf
