// Samples into microbatches.
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/batch.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipeweaver::workloads {

namespace {

// What a microbatch has a limit of. Clips are added up in microseconds: sums of doubles depend on their order.
struct Load {
    std::int64_t tokens = 0;
    std::int64_t items = 0;
    std::int64_t video_us = 0;

    friend Load operator+(const Load& a, const Load& b) {
        return {a.tokens + b.tokens, a.items + b.items, a.video_us + b.video_us};
    }
};

std::int64_t microseconds(double seconds) { return std::llround(seconds * 1e6); }

Load load_of(const Sample& sample) {
    Load load{sample.tokens(), static_cast<std::int64_t>(sample.items.size()), 0};
    for (const auto& item : sample.items)
        if (item.modality == Modality::video) load.video_us += microseconds(item.seconds);
    return load;
}

bool fits(const Load& load, const Model& model) {
    if (load.tokens > model.microbatch_tokens) return false;
    if (model.most_items > 0 && load.items > model.most_items) return false;
    return model.most_video_seconds <= 0 || load.video_us <= microseconds(model.most_video_seconds);
}

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
    if (!fits(load, model))
        fail(ErrorKind::input,
             "sample '{}' has {:.6g} s of video, a microbatch of '{}' holds {:.6g} s (most_video_seconds of its model "
             "file)",
             sample.id, static_cast<double>(load.video_us) / 1e6, model.name, model.most_video_seconds);
}

// The samples of each microbatch, in the order that they were put there.
using Bins = std::vector<std::vector<std::size_t>>;

Bins pack_given(const std::vector<Load>& loads, const Model& model) {
    Bins bins;
    Load open;
    for (std::size_t i = 0; i < loads.size(); ++i) {
        if (bins.empty() || !fits(open + loads[i], model)) {
            bins.emplace_back();
            open = {};
        }
        bins.back().push_back(i);
        open = open + loads[i];
    }
    return bins;
}

Bins pack_first_fit_decreasing(const std::vector<Load>& loads, const Model& model) {
    std::vector<std::size_t> order(loads.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        if (loads[a].tokens != loads[b].tokens) return loads[a].tokens > loads[b].tokens;
        return loads[a].video_us > loads[b].video_us;
    });
    Bins bins;
    std::vector<Load> filled;
    for (const std::size_t i : order) {
        std::size_t bin = 0;
        while (bin < bins.size() && !fits(filled[bin] + loads[i], model)) ++bin;
        if (bin == bins.size()) {
            bins.emplace_back();
            filled.emplace_back();
        }
        bins[bin].push_back(i);
        filled[bin] = filled[bin] + loads[i];
    }
    for (auto& bin : bins) std::sort(bin.begin(), bin.end());
    return bins;
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

void require_fit(const Sample& sample, const Model& model) { require_fit(sample, load_of(sample), model); }

std::vector<Microbatch> pack(const std::vector<Sample>& samples, const Model& model, PackingOrder order) {
    std::vector<Load> loads;
    for (const auto& sample : samples) {
        loads.push_back(load_of(sample));
        require_fit(sample, loads.back(), model);
    }
    const Bins bins = order == PackingOrder::given ? pack_given(loads, model) : pack_first_fit_decreasing(loads, model);
    std::vector<Microbatch> microbatches;
    for (const auto& bin : bins) microbatches.push_back(microbatch_of(bin, samples, attends_by_item(model)));
    return microbatches;
}

DrawnBatch draw_batch(std::string_view dataset, const Model& model, std::uint64_t seed, std::int64_t microbatches) {
    PIPEWEAVER_ASSERT(microbatches >= 1);
    constexpr std::uint64_t most_empty = 10'000;  // samples in a row of which nothing is left for this model
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
        if (!fits(open + load, model)) {
            if (opened == microbatches) break;
            ++opened;
            open = {};
        }
        open = open + load;
        batch.samples.push_back(std::move(sample));
    }
    batch.microbatches = pack(batch.samples, model);
    return batch;
}

}  // namespace pipeweaver::workloads
