// Samples into microbatches.
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "workloads/packing_bins.hpp"
#include "workloads/packing_padded.hpp"

#include <algorithm>

namespace pipeweaver::workloads {

namespace {

// An item of its own that is too large says more than the sample's sum.
void require_items_fit(const Sample& sample, const Model& model) {
    for (std::size_t i = 0; i < sample.items.size(); ++i)
        if (sample.items[i].tokens > model.microbatch_tokens)
            fail(ErrorKind::input,
                 "sample '{}' has an item ({}, number {}) of {} tokens, a microbatch of '{}' holds {} "
                 "(microbatch_tokens of its model file)",
                 sample.id, name_of(sample.items[i].modality), i, sample.items[i].tokens, model.name,
                 model.microbatch_tokens);
}

void require_fit(const Sample& sample, const Load& load, const Model& model) {
    require_items_fit(sample, model);
    if (load.tokens > model.microbatch_tokens)
        fail(ErrorKind::input,
             "sample '{}' has {} tokens, a microbatch of '{}' holds {} (microbatch_tokens of its model file)",
             sample.id, load.tokens, model.name, model.microbatch_tokens);
    if (model.most_items > 0 && load.items > model.most_items)
        fail(ErrorKind::input, "sample '{}' has {} items, a microbatch of '{}' holds {} (most_items of its model file)",
             sample.id, load.items, model.name, model.most_items);
    if (!fits(load, limit_of(model)))
        fail(ErrorKind::input,
             "sample '{}' has {:.6g} s of video, a microbatch of '{}' holds {:.6g} s (most_video_seconds of its model "
             "file)",
             sample.id, static_cast<double>(load.video_us) / 1e6, model.name, model.most_video_seconds);
}

// Tokens, patches and the squares of attention, and with them what is kept for the backward.
Works work_of_modules(const std::vector<Sample>& samples, const Model& model) {
    const SampleWork work(model);
    Works works{model.modules.size(), {}};
    for (const Sample& sample : samples)
        for (std::size_t m = 0; m < works.kinds; ++m) works.of.push_back(work.of(sample, m));
    return works;
}

// As many as in given order, or in given order where that does not go.
Bins balanced(const std::vector<Sample>& samples, const std::vector<Load>& loads, const Model& model) {
    Bins given = bins_in_order(loads, limit_of(model));
    auto bins = bins_spread(loads, limit_of(model), work_of_modules(samples, model), given.size());
    return bins ? std::move(*bins) : std::move(given);
}

Microbatch microbatch_of(const std::vector<std::size_t>& members, const std::vector<Sample>& samples,
                         bool attends_by_item) {
    Microbatch microbatch;
    microbatch.samples = members;
    for (const std::size_t i : members) {
        const Sample& sample = samples[i];
        for (std::size_t k = 0; k < sample.items.size(); ++k) {
            microbatch.items.push_back({i, k, sample.items[k], sample.tokens()});
            if (attends_by_item && sample.items[k].tokens > 0) microbatch.lengths.push_back(sample.items[k].tokens);
        }
        if (!attends_by_item && sample.tokens() > 0) microbatch.lengths.push_back(sample.tokens());
        microbatch.tokens += sample.tokens();
        microbatch.loss_tokens += sample.loss_tokens;
    }
    return microbatch;
}

// In a vision encoder or diffusion transformer alone, attention stays inside an image or clip.
bool attends_by_item(const Model& model) {
    const ModuleKind kind = model.modules[model.backbone()].architecture.kind;
    return kind != ModuleKind::language_model && kind != ModuleKind::text_encoder;
}

}  // namespace

std::string_view name_of(Packing packing) {
    switch (packing) {
        case Packing::first_fit_decreasing:
            return "ffd";
        case Packing::balanced:
            return "balanced";
        case Packing::padded:
            return "padded";
        default:
            return "given";
    }
}

const std::vector<Packing>& packings() {
    static const std::vector<Packing> all{Packing::given, Packing::first_fit_decreasing, Packing::balanced,
                                          Packing::padded};
    return all;
}

void require_fit(const Sample& sample, const Model& model) { require_fit(sample, load_of(sample), model); }

namespace {

Bins bins_by(Packing packing, const std::vector<Sample>& samples, const std::vector<Load>& loads, const Model& model) {
    switch (packing) {
        case Packing::first_fit_decreasing:
            return bins_first_fit_decreasing(loads, limit_of(model));
        case Packing::balanced:
            return balanced(samples, loads, model);
        case Packing::padded:
            return PaddedPacking(samples, loads, model).run();
        default:
            return bins_in_order(loads, limit_of(model));
    }
}

}  // namespace

std::vector<Microbatch> pack(const std::vector<Sample>& samples, const Model& model, Packing packing) {
    std::vector<Load> loads;
    for (const auto& sample : samples) {
        loads.push_back(load_of(sample));
        require_fit(sample, loads.back(), model);
    }
    const Bins bins = bins_by(packing, samples, loads, model);
    std::vector<Microbatch> microbatches;
    for (const auto& bin : bins) microbatches.push_back(microbatch_of(bin, samples, attends_by_item(model)));
    return microbatches;
}

DrawnBatch draw_batch(std::string_view dataset, const Model& model, std::uint64_t seed, std::int64_t microbatches,
                      Packing packing) {
    PIPEWEAVER_ASSERT(microbatches >= 1);
    constexpr std::uint64_t most_empty = 10'000;  // samples in a row of which nothing is left for this model
    const Load limit = limit_of(model);
    DrawnBatch batch;
    Load open;
    std::int64_t opened = 1;
    std::uint64_t empty = 0;
    for (std::uint64_t number = 0;; ++number) {
        Sample sample = draw(dataset, model, seed, number);
        const Load load = load_of(sample);
        if (load.tokens == 0 && load.items == 0) {
            if (++empty == most_empty)
                fail(ErrorKind::input, "data set '{}' has nothing that the model '{}' takes", dataset, model.name);
            continue;
        }
        empty = 0;
        if (!fits(open + load, limit)) {
            if (opened == microbatches) break;
            ++opened;
            open = {};
        }
        open = open + load;
        batch.samples.push_back(std::move(sample));
    }
    batch.microbatches = pack(batch.samples, model, packing);
    return batch;
}

}  // namespace pipeweaver::workloads
