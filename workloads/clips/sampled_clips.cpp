#include "workloads/clips/sampled_clips.hpp"

#include <algorithm>
#include <cmath>

namespace pipeweaver::workloads {

namespace {

// Frames that are read. Those of a clip whose rate is not known are as many as may be asked for.
std::int64_t frames_read(const SampledClips& rule, const Clip& clip) {
    const std::int64_t all = clip.fps ? std::max<std::int64_t>(1, std::llround(clip.seconds * *clip.fps)) : 0;
    const double wanted = std::max(clip.seconds * rule.fps, static_cast<double>(rule.min_frames));
    const auto most = [&](std::int64_t limit) { return all > 0 ? std::min(limit, all) : limit; };
    if (rule.whole_clip) return most(static_cast<std::int64_t>(std::min(wanted, static_cast<double>(rule.max_frames))));
    const auto whole = [&](std::int64_t frames) { return frames / rule.frames * rule.frames; };
    const auto limit = whole(most(rule.max_frames));
    return std::max<std::int64_t>(1, whole(static_cast<std::int64_t>(std::min(wanted, static_cast<double>(limit)))));
}

}  // namespace

ClipGrid sampled(const SampledClips& rule, const Clip& clip) {
    const std::int64_t read = frames_read(rule, clip);
    const double side = static_cast<double>(rule.patch * rule.merge);
    double width = static_cast<double>(clip.width), height = static_cast<double>(clip.height);
    double frames = 1, grouped = 1;  // whose pixels are counted together
    if (rule.whole_clip) {
        const auto group = static_cast<double>(rule.frames);
        frames = std::max(group, static_cast<double>(read));
        grouped = std::nearbyint(frames / group) * group;
        const double grow = std::max(side / height, side / width);
        if (grow > 1) {
            width = std::floor(width * grow);
            height = std::floor(height * grow);
        }
    }
    double across = std::nearbyint(width / side), down = std::nearbyint(height / side);
    const auto least = static_cast<double>(rule.min_pixels), largest = static_cast<double>(rule.max_pixels);
    const double pixels = grouped * across * side * down * side;
    if (pixels > largest) {
        const double shrink = std::sqrt(frames * height * width / largest);
        across = std::floor(width / shrink / side);
        down = std::floor(height / shrink / side);
    } else if (pixels < least) {
        const double grow = std::sqrt(least / (frames * height * width));
        across = std::ceil(width * grow / side);
        down = std::ceil(height * grow / side);
    }
    const auto whole = [](double tokens) { return std::max<std::int64_t>(1, static_cast<std::int64_t>(tokens)); };
    return {(read + rule.frames - 1) / rule.frames, whole(across), whole(down)};
}

}  // namespace pipeweaver::workloads
