#include "workloads/hf/images.hpp"

#include "workloads/fields.hpp"
#include "workloads/hf/keys.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::workloads::hf {

namespace {

void say(const Towers& towers, const std::string& line) { assume(*towers.root.reading, line); }

// Of Qwen2-VL's model card, and of its processor's class the most.
constexpr std::int64_t least_of_card = 256, most_of_card = 1280;

// What is assumed where a limit is not said.
std::string without_limits(const Towers& towers, bool least, bool largest) {
    const std::string_view rules = least && largest ? "image.min_tokens and image.max_tokens are"
                                   : least          ? "image.min_tokens is"
                                                    : "image.max_tokens is";
    if (towers.processors.images.empty())
        return fmt::format("{} what the model card recommends: there is no preprocessor_config.json", rules);
    const std::string_view keys = least && largest ? "min_pixels nor max_pixels"
                                  : least ? "min_pixels (1 token where max_pixels is less than the card's least)"
                                          : "max_pixels";
    return fmt::format("{} what the model card recommends: preprocessor_config.json has no {}", rules, keys);
}

// Limits that cross once they are whole tokens.
void order_limits(const std::optional<Said>& least, const std::optional<Said>& largest, ImageRule& rule) {
    if (!largest) {
        rule.max_tokens = rule.min_tokens;
        return;
    }
    if (rule.max_tokens == 0) largest->place.fail(fmt::format("is {}, less than one token", largest->value));
    if (least && largest->value < least->value)
        largest->place.fail(fmt::format("is {}, less than the least, {}", largest->value, least->value));
    rule.min_tokens = least ? rule.max_tokens : 1;
}

// Limits in pixels as tokens; a token is of so many frames.
void read_limits(const Towers& towers, Model& model, std::int64_t frames) {
    const std::int64_t side = towers.vit.patch_size * towers.merge, unit = side * side * frames;
    const auto least = said_by(towers.processors.images, least_pixels, most_tokens * unit);
    const auto largest = said_by(towers.processors.images, largest_pixels, most_tokens * unit);
    model.image.min_tokens = least ? (least->value + unit - 1) / unit : least_of_card;
    model.image.max_tokens = largest ? largest->value / unit : most_of_card;
    if (model.image.max_tokens < model.image.min_tokens) order_limits(least, largest, model.image);
    if (!least || !largest) say(towers, without_limits(towers, !least, !largest));
}

// The side of a square that a processor scales or cuts all images to.
std::optional<std::int64_t> tile_of(const Part& part) {
    if (flag(part, key::center_crop, true))
        if (const auto cut = side_of(part, key::crop_size)) return cut;
    const auto member = given(part, key::processor_size);
    return member && member->is_object() ? side_of(part, key::processor_size) : std::nullopt;
}

void require_tile(const Towers& towers, std::int64_t tile) {
    for (const Part& part : towers.processors.images) {
        const auto side = tile_of(part);
        if (side && *side != tile)
            part.json.fail(
                fmt::format("images are squares of {} pixels, but the encoder takes {} (config.json)", *side, tile));
    }
}

}  // namespace

void images_native(const Towers& towers, Model& model) { read_limits(towers, model, 1); }

void images_frames(const Towers& towers, Model& model) { read_limits(towers, model, towers.vit.temporal_patch); }

void images_limited(const Towers& towers, Model& model) {
    const std::int64_t merged = towers.merge * towers.merge;
    const auto limit = said_by(
        towers.processors.images, [](const Part& part) { return given(part, key::patch_limit); }, most_tokens * merged);
    if (!limit) return read_limits(towers, model, 1);
    if (limit->value < merged) limit->place.fail(fmt::format("is {}, less than one token's patches", limit->value));
    model.image.resize = ImageResize::pad;
    model.image.max_tokens = limit->value / merged;
}

void images_up_to_side(const Towers& towers, Model& model) {
    const auto said = said_by(
        towers.processors.images, [](const Part& part) { return inside(part, key::processor_size, key::longest_edge); },
        most_pixels);
    const std::int64_t side = said ? said->value : square(towers.vision, key::image);
    model.image.resize = ImageResize::side;
    model.image.longest_side = side;
    say(towers, fmt::format("images keep their size up to image.longest_side, {}",
                            said ? "size.longest_edge" : "the encoder's image_size"));
}

void images_few(const Towers& towers, Model& model) {
    const auto said = said_by(
        towers.processors.images, [](const Part& part) { return given(part, key::soft_tokens_most); }, most_tokens);
    model.image.resize = ImageResize::fill;
    model.image.max_tokens = said ? said->value : size(towers.root, key::soft_tokens).value_or(280);
    if (!said) say(towers, "images are filled up to image.max_tokens, what the model card recommends");
}

void images_square(const Towers& towers, Model& model) {
    if (towers.vit.image_size == 0) return images_up_to_side(towers, model);
    model.image.fixed_pixels = size(towers.root, key::forced_image).value_or(towers.vit.image_size);
    require_tile(towers, model.image.fixed_pixels);
    say(towers, "every image is one tile: the tiling of large images is not represented");
}

void images_slices(const Towers& towers, Model& model) {
    model.image.fixed_pixels = needed(towers.root, key::image);
    say(towers, "every image is one slice: the slicing of large images is not represented");
}

void images_crops(const Towers& towers, Model& model) {
    const std::int64_t side = towers.vit.patch_size * towers.merge;
    model.image.fixed_pixels = (towers.vit.image_size + side - 1) / side * side;
    say(towers,
        "every image is one crop, its last patches filled up to whole tokens: further crops are not represented");
}

void images_tiled(const Towers& towers, Model& model) {
    const std::int64_t tiles = size(towers.vision, key::tiles).value_or(4);
    if (tiles != 4) refuse(towers.vision, fmt::format("max_num_tiles is {}, only 4 are read", tiles));
    require_tile(towers, towers.vit.image_size);
    model.image.fixed_pixels = 2 * towers.vit.image_size;
    say(towers, "every image is four tiles of the encoder's image_size; cross attention reads one image a sample");
    say(towers, "what is projected and handed to the language model is one token an image");
}

}  // namespace pipeweaver::workloads::hf
