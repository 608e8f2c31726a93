// How many of a batch's items a model's rules give other sizes than their own, in words; how many samples are too
// long for it.
#include "pipeweaver/workloads/batch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace pipeweaver::workloads {

namespace {

struct Count {
    std::int64_t all = 0, changed = 0, rounded = 0;
    double own = 0, taken = 0;  // positions of the changed ones
};

// More than a twentieth.
bool is_worth_saying(std::int64_t some, std::int64_t all) { return some * 20 > all; }

Count count(const std::vector<Sample>& samples, Modality modality) {
    Count count;
    for (const Sample& sample : samples)
        for (const Item& item : sample.items) {
            if (item.modality != modality) continue;
            ++count.all;
            count.rounded += item.rounded ? 1 : 0;
            if (item.own == 0) continue;
            ++count.changed;
            count.own += static_cast<double>(item.own);
            count.taken += static_cast<double>(item.patches > 0 ? item.patches : item.tokens);
        }
    return count;
}

std::string image_rule(const ImageRule& rule) {
    if (rule.fixed_pixels > 0) return fmt::format("all {} x {} pixels", rule.fixed_pixels, rule.fixed_pixels);
    if (rule.longest_side > 0) return fmt::format("sides of {} pixels or fewer", rule.longest_side);
    if (rule.max_tokens == 0) return fmt::format("{} tokens or more", rule.min_tokens);
    return fmt::format("{} to {} tokens", rule.min_tokens, rule.max_tokens);
}

std::string video_rule(const VideoRule& rule) {
    const auto size = rule.keeps_sizes() ? "" : fmt::format("{} x {} pixels, ", rule.width, rule.height);
    return fmt::format("{}{:.6g} frames a second, the first {:.6g} s", size, rule.fps, rule.max_seconds);
}

// `keys`: of the model file; `way_out`: what else can be done there, or nothing.
struct Words {
    std::string_view items;
    std::string rule;
    std::string_view keys, way_out;
};

void say(const Count& count, const Words& words, std::vector<std::string>& lines) {
    if (!is_worth_saying(count.changed, count.all)) return;
    const double times = count.own > count.taken ? count.own / count.taken : count.taken / count.own;
    lines.push_back(fmt::format(
        "{} of {} {} were resized by the model's rule ({}) and have {:.1f}x {} tokens than at their own sizes; "
        "to change that edit {} in the model file (pipeweaver show MODEL prints it{})",
        count.changed, count.all, words.items, words.rule, times, count.own > count.taken ? "fewer" : "more",
        words.keys, words.way_out));
}

// Samples that are longer than the model was made for; "" where there are none, or that is not known.
std::string beyond_positions(const std::vector<Sample>& samples, const Model& model) {
    std::int64_t longer = 0, longest = 0;
    for (const Sample& sample : samples) {
        longest = std::max(longest, sample.tokens());
        longer += sample.tokens() > model.most_positions ? 1 : 0;
    }
    if (model.most_positions == 0 || longer == 0) return {};
    return fmt::format(
        "{} of {} samples are longer than the {} positions of the model (max_position_embeddings), the longest has {}: "
        "most trainings cut or drop them",
        longer, samples.size(), model.most_positions, longest);
}

}  // namespace

std::vector<std::string> resized(const std::vector<Sample>& samples, const Model& model) {
    std::vector<std::string> lines;
    const std::string_view keys = model.image.fixed_pixels > 0               ? "image.fixed_pixels"
                                  : model.image.resize == ImageResize::side  ? "image.longest_side"
                                  : model.image.resize == ImageResize::round ? "image.min_tokens and image.max_tokens"
                                                                             : "image.max_tokens";
    say(count(samples, Modality::image), {"images", image_rule(model.image), keys, ""}, lines);
    const Count clips = count(samples, Modality::video);
    say(clips,
        {"clips", video_rule(model.video), "video",
         model.video.keeps_sizes() ? "" : "; without width and height there each clip keeps its own"},
        lines);
    if (is_worth_saying(clips.rounded, clips.all))
        lines.push_back(
            fmt::format("{} of {} clips have a side that is no multiple of {} pixels, and are rounded to "
                        "whole latent patches (video.spatial of the model file)",
                        clips.rounded, clips.all, model.video.spatial));
    if (const auto longer = beyond_positions(samples, model); !longer.empty()) lines.push_back(longer);
    return lines;
}

}  // namespace pipeweaver::workloads
