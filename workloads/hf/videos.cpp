#include "workloads/hf/videos.hpp"

#include "workloads/hf/keys.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::workloads::hf {

namespace {

constexpr std::int64_t largest_said = 1'000'000'000'000;  // pixels of all frames

// `unsaid`: the number stays the rule's own where no file says it.
void read_number(const Towers& towers, std::optional<Json> (*find)(const Part&), std::int64_t& number, bool& unsaid) {
    const auto said = said_by(towers.processors.videos, find, largest_said);
    if (said) number = said->value;
    unsaid = unsaid || !said;
}

void read_rate(const Towers& towers, SampledClips& rule, bool& unsaid) {
    for (const Part& part : towers.processors.videos)
        if (const auto said = given(part, key::frame_rate)) {
            rule.fps = said->number(0.001, 1'000);
            return;
        }
    unsaid = true;
}

// `whose`: numbers that hold where the files say none.
void read_sampled(const Towers& towers, SampledClips rule, std::string_view whose, Model& model) {
    rule.patch = towers.vit.patch_size;
    rule.merge = towers.merge;
    rule.frames = towers.vit.temporal_patch;
    bool unsaid = false;
    read_number(towers, least_pixels, rule.min_pixels, unsaid);
    read_number(towers, largest_pixels, rule.max_pixels, unsaid);
    rule.max_pixels = std::max(rule.max_pixels, rule.min_pixels);
    const auto least = [](const Part& part) { return given(part, key::min_frames); };
    const auto largest = [](const Part& part) { return given(part, key::max_frames); };
    read_number(towers, least, rule.min_frames, unsaid);
    read_number(towers, largest, rule.max_frames, unsaid);
    rule.max_frames = std::max({rule.max_frames, rule.min_frames, rule.frames});
    read_rate(towers, rule, unsaid);
    model.video.sampled = rule;
    if (unsaid)
        assume(*towers.root.reading,
               fmt::format("what no file says of videos is as {}: {:.6g} frames a second, {} to {} of a clip, {} to {} "
                           "pixels of {} (video; a training may set others)",
                           whose, rule.fps, rule.min_frames, rule.max_frames, rule.min_pixels, rule.max_pixels,
                           rule.whole_clip ? "all of them together" : "each"));
}

}  // namespace

// The class's numbers; its frames are sampled by qwen-vl-utils, at 2 a second, before it sees them.
void videos_by_frame(const Towers& towers, Model& model) {
    const std::int64_t side = towers.vit.patch_size * towers.merge;
    read_sampled(towers, {.min_pixels = 128 * side * side, .max_pixels = 768 * side * side}, "Qwen's tools have it",
                 model);
}

// Of the video_preprocessor_config.json of Qwen3-VL's releases; the class's own are of one frame.
void videos_by_clip(const Towers& towers, Model& model) {
    read_sampled(towers, {.min_pixels = 4'096, .max_pixels = 25'165'824, .whole_clip = true},
                 "Qwen3-VL's released files have it", model);
}

}  // namespace pipeweaver::workloads::hf
