#include "validation/multimodal_run.hpp"

#include "pipeweaver/base/text.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/catalogue.hpp"
#include "validation/multimodal_kinds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <utility>

namespace pipeweaver::validation {

using emulator::Recompute;

namespace {

// Microbatches as large as any row has.
constexpr std::int64_t room_for_any = std::int64_t{1} << 26;

// Of a row without tensor parallelism there is none.
std::int64_t share_of_a_replica(const PublishedRun& row) {
    const auto replicas = row.gpus ? *row.gpus / (row.tp.value_or(1) * row.pp.value_or(1) * row.cp.value_or(1)) : 0;
    return replicas == 0 || !row.global_batch || *row.global_batch % replicas != 0 ? 0 : *row.global_batch / replicas;
}

// The samples of a microbatch, and what was assumed of them; 0: not known.
std::int64_t samples_of(const PublishedRun& row, const MultimodalKind& kind, std::vector<std::string>& assumed) {
    if (kind.samples > 0) return kind.samples;
    if (row.micro_batch) return *row.micro_batch;
    if (kind.micro_batch > 0) {
        assumed.push_back(fmt::format("micro_batch {}", kind.micro_batch));
        return kind.micro_batch;
    }
    const std::int64_t share = share_of_a_replica(row);
    if (share > 0) assumed.push_back(fmt::format("no tensor parallelism, {} samples a GPU at once", share));
    return share;
}

// Clips of `positions`; nothing: no whole number of latent frames has as many.
std::optional<std::string> clips_of(const workloads::VideoRule& rule, std::int64_t positions,
                                    std::vector<std::string>& assumed) {
    const std::int64_t of_frame = (rule.width / rule.spatial) * (rule.height / rule.spatial);
    if (positions % of_frame != 0) return std::nullopt;
    const std::int64_t frames = 1 + (positions / of_frame - 1) * rule.frames_in;
    assumed.push_back(fmt::format("clips of {} frames of {} x {} pixels", frames, rule.width, rule.height));
    return fmt::format("constant-0+{}s", static_cast<double>(frames) / rule.fps);
}

// Images of the data that the row names, and text up to the row's sequence; nothing: it names none, or too large ones.
std::optional<std::string> padded(const PublishedRun& row, workloads::Model model, std::vector<std::string>& assumed) {
    const NamedImages* images = images_of(row);
    if (images == nullptr || !row.seq) return std::nullopt;
    model.microbatch_tokens = room_for_any;
    const std::int64_t tokens = workloads::draw(fmt::format("constant-0+{}", images->image), model, 1, 0).tokens();
    if (tokens >= *row.seq) return std::nullopt;
    assumed.emplace_back(images->assumed);
    return fmt::format("constant-{}+{}", *row.seq - tokens, images->image);
}

// The data set as --dataset takes it; nothing: the row lacks what it is made of.
std::optional<std::string> dataset_of(const PublishedRun& row, const MultimodalKind& kind,
                                      const workloads::Model& model, std::vector<std::string>& assumed) {
    if (kind.dataset == clips_of_the_row) return row.seq ? clips_of(model.video, *row.seq, assumed) : std::nullopt;
    if (kind.dataset == padded_to_the_row) return padded(row, model, assumed);
    const bool alike = kind.dataset.starts_with("constant-");
    return alike || row.seq ? std::optional<std::string>(kind.dataset) : std::nullopt;
}

// A microbatch holds so many samples: as large as they are where all are alike, else as long as the row's sequences.
void hold_samples(const PublishedRun& row, MultimodalRun& run) {
    workloads::Model& model = run.model;
    model.microbatch_tokens = room_for_any;
    const auto sample = workloads::draw(run.dataset, model, 1, 0);
    model.microbatch_tokens = run.samples * (run.dataset.starts_with("constant-") ? sample.tokens() : *row.seq);
    if (run.lines > 1) model.microbatch_tokens = std::max(model.microbatch_tokens, row.seq.value_or(0));
    if (!sample.items.empty()) model.most_items = run.samples * static_cast<std::int64_t>(sample.items.size());
}

// What a note says of gradient checkpointing in language model and encoder (ms-swift's scripts).
constexpr std::array<std::pair<std::string_view, Recompute>, 4> checkpointing{
    {{"gc true, vgc true", Recompute::full},
     {"gc true, vgc false", Recompute::backbone},
     {"gc false, vgc true", Recompute::encoders},
     {"gc false, vgc false", Recompute::none}}};

// The words of the row, or else its kind's; nothing: no setting has them.
std::optional<Recompute> recompute_of(const PublishedRun& row, const MultimodalKind& kind,
                                      std::vector<std::string>& assumed) {
    const auto note = in_lower_case(row.note);
    for (const auto& [words, setting] : checkpointing)
        if (contains(note, words)) return setting;
    if (row.recompute.empty()) {
        if (!kind.recompute) assumed.emplace_back("no recomputation");
        return kind.recompute.value_or(Recompute::none);
    }
    const auto text = in_lower_case(row.recompute);
    if (text.starts_with("partial")) return Recompute::half;
    return emulator::recompute_named(text);
}

// The backbone's layers in each stage, encoders on the first or on a stage of their own.
std::string layers_of(const PublishedRun& row, const workloads::Model& model, std::vector<std::string>& assumed) {
    const std::int64_t own = contains(row.note, "encoder on a GPU of its own") ? 1 : 0,
                       stages = row.pp.value_or(1) - own;
    const auto& backbone = model.modules[model.backbone()];
    const std::int64_t layers = backbone.architecture.layers;
    if (stages < 1) return {};
    auto split = split_in(row.note, stages, layers);
    if (split.empty() && stages == 1) split = {layers};
    if (split.empty()) {
        if (layers % stages != 0) return {};
        split.assign(static_cast<std::size_t>(stages), layers / stages);
        assumed.emplace_back("stages of as many layers of the language model each");
    }
    if (own == 0) return fmt::format("{}", fmt::join(split, ","));
    std::string text;
    for (std::size_t i = 0; i < model.modules.size(); ++i) {
        if (i == model.backbone()) continue;
        text += fmt::format("{}:{}", model.modules[i].name, model.modules[i].architecture.layers);
        for (std::int64_t stage = 0; stage < stages; ++stage) text += ",0";
        text += '/';
    }
    return fmt::format("{}{}:0,{}", text, backbone.name, fmt::join(split, ","));
}

MultimodalRow run_of(const PublishedRun& row, const MultimodalKind& kind) {
    MultimodalRun run;
    run.model = workloads::find_model(std::string(kind.model));
    if (!kind.assumed.empty()) run.assumed.emplace_back(kind.assumed);
    auto dataset = dataset_of(row, kind, run.model, run.assumed);
    if (!dataset) return {std::nullopt, "unknown: seq, or the data"};
    run.dataset = std::move(*dataset);
    if (!kind.recipe.empty()) run.recipe = emulator::find_recipe(std::string(kind.recipe));
    run.samples = samples_of(row, kind, run.assumed);
    if (run.samples == 0) return {std::nullopt, "unknown: micro_batch"};
    run.lines = kind.lines;
    run.packing = kind.packing;
    hold_samples(row, run);
    const auto recompute = recompute_of(row, kind, run.assumed);
    if (!recompute)
        return {std::nullopt, fmt::format("recompute '{}': allowed are {}", row.recompute,
                                          fmt::join(emulator::recompute_names(), ", "))};
    run.recompute = *recompute;
    if (row.pp.value_or(1) > 1) {
        run.layers = layers_of(row, run.model, run.assumed);
        if (run.layers.empty()) return {std::nullopt, "a pipeline of several networks: its cut is not stated"};
    }
    return {std::move(run), ""};
}

}  // namespace

std::vector<std::int64_t> split_in(std::string_view note, std::int64_t stages, std::int64_t layers) {
    constexpr std::string_view digits = "0123456789";
    for (std::size_t begin = 0; begin < note.size();) {
        std::vector<std::int64_t> split;
        std::size_t end = begin;
        while (true) {
            std::int64_t number = 0;
            const auto [stop, error] = std::from_chars(note.data() + end, note.data() + note.size(), number);
            if (error != std::errc{}) break;
            split.push_back(number);
            end = static_cast<std::size_t>(stop - note.data());
            if (end + 1 >= note.size() || (note[end] != '/' && note[end] != '|')) break;
            ++end;
        }
        if (static_cast<std::int64_t>(split.size()) == stages &&
            std::accumulate(split.begin(), split.end(), std::int64_t{0}) == layers)
            return split;
        begin = std::max(end, begin + 1);
        while (begin < note.size() && digits.find(note[begin]) == std::string_view::npos) ++begin;
    }
    return {};
}

bool is_multimodal(const PublishedRun& row) {
    if (kind_of(row) != nullptr) return true;
    const auto all = in_lower_case(row.source + ' ' + row.model + ' ' + row.note);
    return contains(all, "multimodal") && !contains(all, "text only");  // then no encoder runs
}

MultimodalRow multimodal_run(const PublishedRun& row) {
    if (const auto* kind = kind_of(row)) return run_of(row, *kind);
    if (contains(in_lower_case(row.model), "unet")) return {std::nullopt, "a U-Net, which is no stack of equal blocks"};
    return {std::nullopt, "a multimodal run: the columns hold one of its networks"};
}

}  // namespace pipeweaver::validation
