// How images, clips and audio pieces become tokens and patches under a model's rules.
#pragma once

#include "pipeweaver/workloads/batch.hpp"

#include <array>
#include <optional>

namespace pipeweaver::workloads {

/// The rule with a width and height for clips whose own are not known: its own, else 256 x 448 pixels (assumed).
[[nodiscard]] VideoRule usual_size(VideoRule rule);

/// A clip as it is. What is not known is taken as the model reads it.
struct Clip {
    double seconds = 0;
    std::optional<double> fps = {};
    std::int64_t width = 0, height = 0;  ///< 0: not known
};

/// A model's rules, looked up once for many items.
class ItemRules {
public:
    explicit ItemRules(const Model& model);

    /// Whether some module reads (target: makes) items of this modality.
    bool takes(Modality modality, bool target) const { return way(modality, target).has_value(); }

    /// Whether a clip of a file must have its width and height: the model's rule has none that it would be scaled to.
    bool needs_clip_sizes() const { return model_->video.keeps_sizes() || model_->video.sampled; }

    /// Whether text is part of the backbone's sequence.
    bool takes_text() const { return takes_text_; }

    /// Why not, where takes() is false.
    std::string refusal(Modality modality, bool target) const;

    /// The item of that size. Pre: takes(), sizes > 0.
    Item image(std::int64_t width, std::int64_t height, bool target) const;
    /// A clip of `fps` frames a second has no more than these; none: as many as the model reads.
    Item video(const Clip& clip, bool target) const;
    Item audio(double seconds, bool target) const;

private:
    // How an item's patches relate to the backbone's sequence.
    struct Way {
        enum Kind {
            encoded,    // an encoder makes tokens of patches
            direct,     // the language model reads tokens that were made beforehand
            backbone,   // the backbone itself is an encoder or generator: its positions are patches
            generated,  // a generator makes it outside the backbone's sequence
            predicted   // a head makes it from the backbone's positions
        } kind = encoded;
        std::int64_t reduction = 1;  // patches of a token
        std::int64_t repeats = 1;    // times a head passes a position
    };

    static Item sampled_video(const Way& way, const VideoRule& rule, Clip clip, bool target);
    const std::optional<Way>& way(Modality modality, bool target) const;
    static std::optional<Way> find_way(const Model& model, Modality modality, bool target);
    static Item sized(const Way& way, Modality modality, bool target, std::int64_t tokens, std::int64_t patches);

    const Model* model_;
    std::array<std::array<std::optional<Way>, 2>, 4> ways_;  // [modality][target]
    bool takes_text_ = false;
};

}  // namespace pipeweaver::workloads
