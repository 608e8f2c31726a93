#include "workloads/items.hpp"

#include "pipeweaver/base/assert.hpp"
#include "workloads/clips/sampled_clips.hpp"
#include "workloads/model_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipeweaver::workloads {

namespace {

constexpr std::array all_modalities{Modality::text, Modality::image, Modality::video, Modality::audio};

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool has(const Module& module, Modality modality) {
    return std::count(module.modalities.begin(), module.modalities.end(), modality) > 0;
}

// Patches of `from` that make one token of the backbone, along the first path.
std::int64_t reduction_to(const Model& model, std::size_t from, std::size_t backbone) {
    if (from == backbone) return 1;
    for (const auto& edge : model.edges)
        if (edge.from == from && reaches(model, edge.to, backbone))
            return edge.token_reduction * reduction_to(model, edge.to, backbone);
    return 1;
}

struct Grid {
    std::int64_t width = 1, height = 1;  // in tokens
};

// As PixtralImageProcessor's get_resize_output_image_size: the longer side comes to its limit, and both are filled up.
Grid grid_up_to_side(const ImageRule& rule, std::int64_t width, std::int64_t height) {
    const auto limit = static_cast<double>(rule.longest_side);
    const double ratio = std::max(static_cast<double>(height) / limit, static_cast<double>(width) / limit);
    const auto side = [&](std::int64_t pixels) {
        if (ratio > 1) pixels = static_cast<std::int64_t>(static_cast<double>(pixels) / ratio);
        return std::max<std::int64_t>(1, divide_up(pixels, rule.patch * rule.merge));
    };
    return {side(width), side(height)};
}

// As KimiVLImageProcessor's rescale: the limit is of whole patches, and what is left is filled up.
Grid padded_grid(const ImageRule& rule, std::int64_t width, std::int64_t height) {
    const std::int64_t patches = (width / rule.patch) * (height / rule.patch);
    const std::int64_t limit = rule.max_tokens * rule.merge * rule.merge;
    const double scale =
        limit > 0 && patches > limit ? std::sqrt(static_cast<double>(limit) / static_cast<double>(patches)) : 1;
    const auto side = [&](std::int64_t pixels) {
        const auto scaled = static_cast<std::int64_t>(static_cast<double>(pixels) * scale);
        return std::max<std::int64_t>(1, divide_up(scaled, rule.patch * rule.merge));
    };
    return {side(width), side(height)};
}

// As Gemma4ImageProcessor's get_aspect_ratio_preserving_size: a side of less than a token is one, the other then as
// many as it is longer.
Grid filled_grid(const ImageRule& rule, std::int64_t width, std::int64_t height) {
    const double unit = static_cast<double>(rule.patch * rule.merge);
    const auto w = static_cast<double>(width), h = static_cast<double>(height);
    const double factor = std::sqrt(static_cast<double>(rule.max_tokens) * unit * unit / (w * h));
    const auto side = [&](double pixels) { return static_cast<std::int64_t>(std::floor(factor * pixels / unit)); };
    const auto times = [&](std::int64_t longer, std::int64_t other) {
        return std::clamp<std::int64_t>(longer / other, 1, rule.max_tokens);
    };
    const Grid grid{side(w), side(h)};
    if (grid.height == 0) return {times(width, height), 1};
    if (grid.width == 0) return {1, times(height, width)};
    return grid;
}

// Native resolution. Rounded, as Qwen2-VL's smart_resize: sides are rounded to whole tokens, then scaled together where
// the image has too many or too few of them.
Grid native_grid(const ImageRule& rule, std::int64_t width, std::int64_t height) {
    if (rule.resize == ImageResize::side) return grid_up_to_side(rule, width, height);
    if (rule.resize == ImageResize::pad) return padded_grid(rule, width, height);
    if (rule.resize == ImageResize::fill) return filled_grid(rule, width, height);
    const double unit = static_cast<double>(rule.patch * rule.merge);
    const double w = static_cast<double>(width) / unit, h = static_cast<double>(height) / unit;
    const auto whole = [](double side) { return std::max(std::int64_t{1}, static_cast<std::int64_t>(side)); };
    const Grid rounded{whole(std::nearbyint(w)), whole(std::nearbyint(h))};
    const std::int64_t count = rounded.width * rounded.height;
    if (rule.max_tokens > 0 && count > rule.max_tokens) {
        const double shrink = std::sqrt(static_cast<double>(rule.max_tokens) / (w * h));
        // One token is the least: then the other side must not take more than all.
        const auto side = [&](double s) { return std::min(rule.max_tokens, whole(std::floor(s * shrink))); };
        return {side(w), side(h)};
    }
    if (count < rule.min_tokens) {
        const double grow = std::sqrt(static_cast<double>(rule.min_tokens) / (w * h));
        return {whole(std::ceil(w * grow)), whole(std::ceil(h * grow))};
    }
    return rounded;
}

struct ImageSize {
    std::int64_t tokens = 0, patches = 0;
};

// Without the rule's square or limits.
std::int64_t own_tokens(const ImageRule& rule, std::int64_t width, std::int64_t height) {
    if (rule.fixed_pixels == width && width == height) return 0;
    const Grid grid = native_grid({.patch = rule.patch, .merge = rule.merge}, width, height);
    const std::int64_t count = grid.width * grid.height;
    if (rule.resize == ImageResize::side) return std::max(width, height) <= rule.longest_side ? 0 : count;
    if (rule.resize == ImageResize::fill) {
        const Grid filled = filled_grid(rule, width, height);
        return filled.width * filled.height == count ? 0 : count;
    }
    const bool kept = count >= rule.min_tokens && (rule.max_tokens == 0 || count <= rule.max_tokens);
    return rule.fixed_pixels == 0 && kept ? 0 : count;
}

ImageSize image_size(const ImageRule& rule, std::int64_t width, std::int64_t height) {
    if (rule.fixed_pixels > 0) {
        const std::int64_t patches = rule.fixed_pixels / rule.patch;
        const std::int64_t tokens = divide_up(patches, rule.merge);
        return {tokens * tokens, patches * patches};
    }
    const Grid grid = native_grid(rule, width, height);
    const std::int64_t tokens = grid.width * grid.height;
    return {tokens, tokens * rule.merge * rule.merge};
}

// Latent frames of a clip; one shorter than a latent unit is padded to it.
std::int64_t latent_frames(const VideoRule& rule, double seconds, double fps) {
    constexpr double rounding = 1e-6;  // 0.1 s at 10 frames a second is one frame
    const auto frames = static_cast<std::int64_t>(seconds * fps + rounding);
    if (rule.first_frame_alone) return 1 + std::max<std::int64_t>(frames - 1, 0) / rule.frames_in * rule.frames_out;
    return std::max<std::int64_t>(frames / rule.frames_in, 1) * rule.frames_out;
}

// Latent patches of a frame under the rule's width and height, or the usual ones.
Grid usual_grid(const VideoRule& rule) {
    const VideoRule usual = usual_size(rule);
    const auto side = [&](std::int64_t pixels) { return std::max(std::int64_t{1}, pixels / rule.spatial); };
    return {side(usual.width), side(usual.height)};
}

// At the clip's own width and height, rounded as images of native resolution are; the usual side for one not known.
Grid own_grid(const VideoRule& rule, const Clip& clip) {
    const Grid usual = usual_grid(rule);
    Grid grid = native_grid({.patch = rule.spatial}, clip.width, clip.height);
    if (clip.width == 0 || clip.width == rule.width) grid.width = usual.width;
    if (clip.height == 0 || clip.height == rule.height) grid.height = usual.height;
    return grid;
}

// No more than can be summed.
std::int64_t patches_of(const Grid& grid, std::int64_t frames) {
    constexpr double most = 1e12;
    return static_cast<std::int64_t>(std::min(
        most, static_cast<double>(frames) * static_cast<double>(grid.width) * static_cast<double>(grid.height)));
}

// At the clip's own length, frames and size.
std::int64_t own_patches(const VideoRule& rule, const Clip& clip) {
    return patches_of(own_grid(rule, clip), latent_frames(rule, clip.seconds, clip.fps.value_or(rule.fps)));
}

}  // namespace

VideoRule usual_size(VideoRule rule) {
    if (!rule.keeps_sizes()) return rule;
    rule.width = VideoRule{}.width;
    rule.height = VideoRule{}.height;
    return rule;
}

ItemRules::ItemRules(const Model& model) : model_(&model) {
    for (const auto modality : all_modalities)
        for (const bool target : {false, true})
            ways_[static_cast<std::size_t>(modality)][target ? 1 : 0] = find_way(model, modality, target);
    takes_text_ = has(model.modules[model.backbone()], Modality::text);
}

std::optional<ItemRules::Way> ItemRules::find_way(const Model& model, Modality modality, bool target) {
    const std::size_t backbone = model.backbone();
    for (std::size_t i = 0; i < model.modules.size(); ++i) {
        const Module& module = model.modules[i];
        if (!has(module, modality)) continue;
        const ModuleKind kind = module.architecture.kind;
        const Role role = role_of(model, i);
        if (role == Role::backbone) {
            const bool reads_tokens = kind == ModuleKind::language_model || kind == ModuleKind::text_encoder;
            return Way{reads_tokens ? Way::direct : Way::backbone, 1, 1};
        }
        if (role == Role::encoder && !target) return Way{Way::encoded, reduction_to(model, i, backbone), 1};
        if (role == Role::generator && target)
            return Way{kind == ModuleKind::head ? Way::predicted : Way::generated, 1, module.architecture.repeats};
    }
    return std::nullopt;
}

const std::optional<ItemRules::Way>& ItemRules::way(Modality modality, bool target) const {
    return ways_[static_cast<std::size_t>(modality)][target ? 1 : 0];
}

std::string ItemRules::refusal(Modality modality, bool target) const {
    const bool frames = modality == Modality::video && !target && takes(Modality::image, false);
    return fmt::format("the model '{}' has no module that {} {} items{}", model_->name, target ? "makes" : "reads",
                       name_of(modality),
                       frames ? "; give the frames that your training takes of a clip as images of the sample" : "");
}

Item ItemRules::sized(const Way& way, Modality modality, bool target, std::int64_t tokens, std::int64_t patches) {
    switch (way.kind) {
        case Way::encoded:
            return {modality, tokens, patches, 0, target};
        case Way::direct:
            return {modality, tokens, 0, 0, target};
        case Way::backbone:
            return {modality, patches, patches, 0, target};
        case Way::generated:
            return {modality, 0, patches, 0, target};
        case Way::predicted:
            return {modality, tokens, tokens * way.repeats, 0, target};
    }
    return {};
}

Item ItemRules::image(std::int64_t width, std::int64_t height, bool target) const {
    PIPEWEAVER_ASSERT(takes(Modality::image, target));
    const Way& found = *way(Modality::image, target);
    const ImageRule& rule = model_->image;
    const ImageSize size = image_size(rule, width, height);
    Item item = sized(found, Modality::image, target, size.tokens, size.patches);
    item.own = own_tokens(rule, width, height) * (found.kind == Way::direct ? 1 : rule.merge * rule.merge);
    return item;
}

Item ItemRules::sampled_video(const Way& way, const VideoRule& rule, Clip clip, bool target) {
    if (clip.width == 0) clip.width = rule.width;
    if (clip.height == 0) clip.height = rule.height;
    const ClipGrid grid = sampled(*rule.sampled, clip);
    const std::int64_t merged = rule.sampled->merge * rule.sampled->merge;
    Item item = sized(way, Modality::video, target, grid.tokens(), grid.tokens() * merged);
    item.seconds = clip.seconds;
    if (item.patches > 0) item.spans = grid.groups;
    return item;
}

Item ItemRules::video(const Clip& clip, bool target) const {
    PIPEWEAVER_ASSERT(takes(Modality::video, target));
    const Way& found = *way(Modality::video, target);
    const VideoRule& rule = model_->video;
    if (rule.sampled) return sampled_video(found, rule, clip, target);
    const double read = std::min(rule.fps, clip.fps.value_or(rule.fps));
    const Grid grid = rule.keeps_sizes() ? own_grid(rule, clip) : usual_grid(rule);
    const std::int64_t patches = patches_of(grid, latent_frames(rule, std::min(clip.seconds, rule.max_seconds), read));
    Item item = sized(found, Modality::video, target, divide_up(patches, found.reduction), patches);
    item.seconds = std::min(clip.seconds, rule.max_seconds);
    const std::int64_t own = own_patches(rule, clip);
    if (own != patches) item.own = found.kind == Way::direct ? divide_up(own, found.reduction) : own;
    item.rounded = rule.keeps_sizes() && (clip.width % rule.spatial != 0 || clip.height % rule.spatial != 0);
    return item;
}

Item ItemRules::audio(double seconds, bool target) const {
    PIPEWEAVER_ASSERT(takes(Modality::audio, target));
    const Way& found = *way(Modality::audio, target);
    const auto positions = [&](double rate) {
        return std::max<std::int64_t>(1, std::llround(std::ceil(seconds * rate)));
    };
    Item item = sized(found, Modality::audio, target, positions(model_->audio.tokens_per_second),
                      positions(model_->audio.frames_per_second));
    item.seconds = seconds;
    return item;
}

bool takes(const Module& module, const Item& item) {
    return module.unit == PassUnit::items && has(module, item.modality);
}

}  // namespace pipeweaver::workloads
