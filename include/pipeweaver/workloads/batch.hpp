// With which data: samples, read from a file or drawn from published size distributions, and packed into microbatches.
//
// Determinism  a drawn sample is a function of (data set, seed, its number).
#pragma once

#include "pipeweaver/workloads/model.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pipeweaver::workloads {

/// One image, clip or audio piece of a sample, in the model's own measure.
struct Item {
    Modality modality = Modality::image;
    std::int64_t tokens = 0;  ///< in the backbone's sequence (0 for a target that a diffusion transformer makes)
    std::int64_t patches =
        0;                   ///< positions in its encoder, generator or head (0: the backbone reads its tokens itself)
    double seconds = 0;      ///< clips and audio
    bool target = false;     ///< generated, not read
    std::int64_t own = 0;    ///< positions (tokens, where it has none) at its own size; 0: as it is, or not known
    bool rounded = false;    ///< a clip that keeps its size, but for sides that are no whole latent patches
    std::int64_t spans = 1;  ///< parts of about equal patches that its encoder reads each for itself: groups of frames

    /// What a step takes of them is the same.
    friend bool operator==(const Item& a, const Item& b) {
        return a.modality == b.modality && a.tokens == b.tokens && a.patches == b.patches && a.seconds == b.seconds &&
               a.target == b.target && a.spans == b.spans;
    }
};

/// Whether an item is work of a module that goes over items.
[[nodiscard]] bool takes(const Module& module, const Item& item);

struct Sample {
    std::string id;
    std::int64_t text_tokens = 0;
    std::int64_t loss_tokens = 0;  ///< tokens that count in the loss; default text_tokens
    std::vector<Item> items;
    std::int64_t deferred = 0;  ///< steps that it was left for a later one

    /// Positions in the backbone's sequence.
    std::int64_t tokens() const;

    friend bool operator==(const Sample&, const Sample&) = default;
};

/// A batch file is the batch of one step. The largest published steps have some hundred thousand samples; a file with
/// more is a data set. A million of two images each takes about 400 MB.
constexpr std::size_t most_batch_samples = 1'000'000;

/// Steps that a sample may be left for a later one.
constexpr std::int64_t most_steps_deferred = 1'000;

/// Reads a batch (.jsonl, one sample a line, gzip allowed), turning sizes into tokens by the model's rules.
/// Ids differ; clips are cut to the model's max_seconds; text counts 0 where the backbone takes none. A sample that no
/// microbatch can hold is refused on its line, unless `too_long` is `drop` or `own`, which keep it, and a regular file
/// of more than `most_batch_samples` lines before any is parsed, in constant memory. Throws Error{input} with file and
/// line, Error{io}, Error{limit}.
[[nodiscard]] std::vector<Sample> read_batch(const std::filesystem::path& path, const Model& model,
                                             std::size_t most_samples = most_batch_samples);

/// Reads a batch from a file's content; `name` stands for the file in errors.
[[nodiscard]] std::vector<Sample> parse_batch(const std::string& name, std::string_view text, const Model& model);

/// "8192 tokens of text, 4096 of image": of all samples, in the backbone's sequence, or read by its cross attention;
/// where the model makes an item, the positions that it makes. Only what there is; empty: nothing.
[[nodiscard]] std::string tokens_by_modality(const std::vector<Sample>& samples, const Model& model);

/// "llm 8.03 B parameters; 8192 tokens of text": parameters_by_module(), then these.
[[nodiscard]] std::string sizes_text(const std::vector<Sample>& samples, const Model& model);

/// The samples as a batch file, items with tokens and patches.
[[nodiscard]] std::string to_jsonl(const std::vector<Sample>& samples);

/// A sample that one thing alone fills.
struct FilledSample {
    Modality with = Modality::text;
    Sample sample;
};

/// Of so many positions: of text, and of every kind of item that the model reads those of which an encoder has most to
/// do. No sample of as many brings a module more. Empty: what an encoder reads is not bounded by positions.
/// `images`: samples hold so many at most, text beside them, and nothing else. Where an image may have more positions
/// than the model's rule says, it is counted as all of them.
[[nodiscard]] std::vector<FilledSample> filled_samples(const Model& model, std::int64_t tokens,
                                                       std::optional<std::int64_t> images = {});

/// A batch without the samples that no microbatch can hold, where the model's job drops those; else all of it.
struct Kept {
    std::vector<Sample> samples;
    std::vector<std::string> dropped;  ///< ids, in order
};

/// Throws Error{input} where nothing is left.
[[nodiscard]] Kept without_too_long(std::vector<Sample> samples, const Model& model);

/// Names that `draw` knows, and what of each is assumed.
struct DatasetInfo {
    std::string name;
    std::string about;  ///< what it was fitted to
    bool assumed = true;
};
[[nodiscard]] std::vector<DatasetInfo> datasets();

/// Sample number `number` of the data set; its id is "DATASET-NUMBER". Items are inputs where the model reads their
/// modality, else targets. Documents longer than a microbatch are cut, as training pipelines do: text gives way to
/// items, and items that do not fit even without text are left out, from the end. Images have a size only where the
/// model's rule is native resolution: 512 x 512 pixels then, assumed. Of a data set "constant-SIZES" every sample is
/// alike: "constant-4096" tokens of text, "constant-40+1x336px" with an image of 336 x 336 pixels, "constant-0+5.8s" a
/// clip, "constant-0+5.8s@2fps" one of two frames a second, "constant-40+12s-audio" a piece of audio; such a sample is
/// not cut, and refused where it is larger than a microbatch. With a `too_long` of the job no sample is cut: `error`
/// refuses it, `drop` and `own` give it whole. Throws Error{input} for an unknown data set, naming the nearest, or one
/// whose items the model cannot read: with try_draw()'s `why_not`.
[[nodiscard]] Sample draw(std::string_view dataset, const Model& model, std::uint64_t seed, std::uint64_t number);

/// A sample; or why the data set has none for the model.
struct DrawnSample {
    Sample sample{};
    std::string why_not{};  ///< not empty: it is unknown, not read by the model, or too large for a microbatch
};

/// The sample where to have none is an answer.
[[nodiscard]] DrawnSample try_draw(std::string_view dataset, const Model& model, std::uint64_t seed,
                                   std::uint64_t number);

/// What is assumed of the sizes of these samples, sentences: how clips and audio become tokens where they are given by
/// seconds, and the size of images that a data set only counts. `dataset` is the one they were drawn from, or empty.
[[nodiscard]] std::vector<std::string> assumed_sizes(std::string_view dataset, const std::vector<Sample>& samples,
                                                     const Model& model);

/// A sentence for each modality of whose items more than a twentieth have other sizes than their own: how many, by
/// which rule of the model, what that takes or saves, and how to change it. Of items whose own size a file or data set
/// says. A sentence, too, where more than a twentieth of the clips keep their sizes but for rounding, and where samples
/// are longer than the model's most_positions.
[[nodiscard]] std::vector<std::string> resized(const std::vector<Sample>& samples, const Model& model);

/// A slice of a microbatch's items in the order of its samples.
struct Microbatch {
    struct ItemRef {
        std::size_t sample = 0;  ///< index into the batch
        std::size_t item = 0;    ///< index into Sample::items
        Item size;
        std::int64_t sample_tokens = 0;  ///< of its sample in the backbone's sequence: what a generator reads
    };
    std::vector<std::size_t> samples;   ///< indices into the batch
    std::vector<std::int64_t> lengths;  ///< tokens that attend to each other: of each sample, or of each item where an
                                        ///< encoder or generator is the backbone; none is 0
    std::int64_t tokens = 0;            ///< sum of lengths
    std::int64_t loss_tokens = 0;
    std::vector<ItemRef> items;
};

/// Positions of its items, which is what microbatches of as many tokens differ in.
[[nodiscard]] std::int64_t positions_of(const Microbatch& microbatch);

/// Whether a microbatch of the model can hold it.
[[nodiscard]] bool holds(const Model& model, const Sample& sample);

/// Why no microbatch can hold it: names the sample, and the item if one alone is too large. None: one can, or the job
/// drops such samples or gives them microbatches of their own.
[[nodiscard]] std::optional<std::string> why_not_fit(const Sample& sample, const Model& model);

/// How samples become microbatches. The order of a step's samples is free where its loss is normalised by the step's
/// tokens: assignment.json carries the weights.
enum class Packing : std::uint8_t {
    given,                 ///< in their order: a microbatch is closed when the next sample does not fit
    first_fit_decreasing,  ///< few microbatches: the longest first, each into the first that can take it
    balanced,  ///< a tenth more, with every module's FLOPs as even as they get, and the smallest at both ends
    padded     ///< tokens and items even, in as many microbatches as cost least where every one is padded to
               ///< the largest
};

[[nodiscard]] std::string_view name_of(Packing packing);

/// All, in order.
[[nodiscard]] const std::vector<Packing>& packings();

/// Where microbatches run. Balanced ones are a multiple of `replicas`, and of `replicas * ranks` where that is at most
/// half as many again as first-fit decreasing takes; there are never more than samples. With `equal` all are a multiple
/// of `replicas` where there are samples enough: of the others those with the most tokens are parted in two.
struct Pipelines {
    std::int64_t replicas = 1, ranks = 1;
    bool equal = false;
};

/// Packs samples into microbatches of at most model.microbatch_tokens tokens, model.most_items items and
/// model.most_video_seconds seconds of clips. In given order and padded the samples of each microbatch are in their
/// order, and where padding does not pay, they are packed in given order. `first_fit_decreasing` and `balanced` are
/// functions of the samples, in whatever order they stand: which are together, the order of microbatches and that of
/// the samples in each. Time O(samples * log samples). A sample that is larger has a microbatch of its own where
/// `too_long` is `own`; else throws Error{input} naming it. `drawn`: so many were drawn of a data set; balanced ones
/// are as many, and more only for `equal`. Pre: pipelines have replicas and ranks.
[[nodiscard]] std::vector<Microbatch> pack(const std::vector<Sample>& samples, const Model& model,
                                           Packing packing = Packing::given, const Pipelines& pipelines = {},
                                           std::optional<std::size_t> drawn = {});

/// Why these samples are no microbatch: they are more than one of the model may have, and not one sample on its own.
/// None: they are one.
[[nodiscard]] std::optional<std::string> why_no_microbatch(const std::vector<std::size_t>& members,
                                                           const std::vector<Sample>& samples, const Model& model);

/// The microbatch of these samples, in that order. Pre: they are one.
[[nodiscard]] Microbatch microbatch_of(const std::vector<std::size_t>& members, const std::vector<Sample>& samples,
                                       const Model& model);

/// A batch without what is left for a later step.
struct Deferral {
    std::vector<Sample> now, later;  ///< both in the batch's order; together they are the batch
};

/// Leaves samples with more items than others where every microbatch would be padded to them: where what is left of the
/// batch then takes 5 % less for its work, and is at least three quarters of it. No sample is left more than
/// `most_steps` times; one that cannot be left again takes along whatever has as few items. Pre: most_steps >= 1.
[[nodiscard]] Deferral defer(std::vector<Sample> samples, const Model& model, std::int64_t most_steps);

/// Draws samples from the data set until exactly `microbatches` microbatches are full in given order, and packs them,
/// balanced into as many; the sample that would open one more is not taken, and those of which the model takes nothing
/// are skipped. Pre: microbatches >= 1.
struct DrawnBatch {
    std::vector<Sample> samples;
    std::vector<Microbatch> microbatches;
    std::vector<std::string> dropped;  ///< ids of samples that no microbatch can hold, left out
};
[[nodiscard]] DrawnBatch draw_batch(std::string_view dataset, const Model& model, std::uint64_t seed,
                                    std::int64_t microbatches, Packing packing = Packing::given,
                                    const Pipelines& pipelines = {});

/// Draws exactly `samples` samples in the same order, those of which the model takes nothing left out, and packs them.
/// Pre: samples >= 1.
[[nodiscard]] DrawnBatch draw_samples(std::string_view dataset, const Model& model, std::uint64_t seed,
                                      std::int64_t samples, Packing packing = Packing::given,
                                      const Pipelines& pipelines = {});

}  // namespace pipeweaver::workloads
