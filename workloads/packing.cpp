// Samples into microbatches.
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "pipeweaver/workloads/counts.hpp"
#include "workloads/packing_bins.hpp"

#include <algorithm>
#include <array>

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

bool takes(const Module& module, const Item& item) {
    return module.unit == PassUnit::items &&
           std::find(module.modalities.begin(), module.modalities.end(), item.modality) != module.modalities.end();
}

// Forward FLOPs of a network by position and by pair of positions that attend to each other; windows as if they were
// none.
struct Flops {
    explicit Flops(const Architecture& network) {
        for (std::int64_t layer = 0; layer < network.layers; ++layer) {
            of_position += layer_flops(network, layer, 1, 0);
            of_pair += layer_flops(network, layer, 0, 1);
        }
        of_position += head_flops(network, 1);
    }

    double of_position = 0, of_pair = 0;
};

// Forward FLOPs of every module over what a sample brings it.
class SampleWork {
public:
    explicit SampleWork(const Model& model) : model_(model) {
        for (const Module& module : model.modules) flops_.emplace_back(module.architecture);
    }

    double of(const Sample& sample, std::size_t m) const {
        double work = by_microbatch(m) ? of_length(m, sample.tokens()) : 0;
        for (const Item& item : sample.items)
            if (takes(model_.modules[m], item)) work += of_length(m, item.patches);
        return work;
    }

    bool by_microbatch(std::size_t m) const { return model_.modules[m].unit != PassUnit::items; }

    double of_length(std::size_t m, std::int64_t length) const {
        const std::array lengths{length};
        return flops_[m].of_position * static_cast<double>(length) +
               flops_[m].of_pair * attention_pairs(model_.modules[m].architecture, lengths);
    }

private:
    const Model& model_;
    std::vector<Flops> flops_;
};

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

// Packs for fixed shapes: every microbatch is as large as the largest in tokens and in items, and every item as the
// largest. Few full ones cost less than many even ones where one sample is large whatever is done.
class PaddedPacking {
public:
    PaddedPacking(const std::vector<Sample>& samples, const std::vector<Load>& loads, const Model& model)
        : loads_(loads), model_(model), work_(model) {
        for (std::size_t m = 0; m < model.modules.size(); ++m) add_costs(samples, m);
    }

    Bins run() const {
        Bins best = bins_in_order(loads_, limit_of(model_));
        double least = cost(best);
        const std::size_t given = best.size(), fewest = std::min(given, fewest_bins());
        const std::size_t step = (given - fewest) / most_tried + 1;
        for (std::size_t count = fewest; count <= given; count += step) {
            auto bins = bins_spread(loads_, limit_of(model_), tokens_and_items(), count);
            if (!bins || cost(*bins) >= least) continue;
            least = cost(*bins);
            best = std::move(*bins);
        }
        return best;
    }

private:
    static constexpr std::size_t most_tried = 16;  // numbers of microbatches

    void add_costs(const std::vector<Sample>& samples, std::size_t m) {
        if (work_.by_microbatch(m))
            of_token_ += work_.of_length(m, model_.microbatch_tokens) / static_cast<double>(model_.microbatch_tokens);
        std::int64_t patches = 0;
        for (const Sample& sample : samples)
            for (const Item& item : sample.items)
                if (takes(model_.modules[m], item)) patches = std::max(patches, item.patches);
        if (patches > 0) of_item_ += work_.of_length(m, patches);
    }

    double cost(const Bins& bins) const {
        std::int64_t tokens = 0, items = 0;
        for (const auto& bin : bins) {
            Load sum;
            for (const std::size_t i : bin) sum = sum + loads_[i];
            tokens = std::max(tokens, sum.tokens);
            items = std::max(items, sum.items);
        }
        return static_cast<double>(bins.size()) *
               (of_token_ * static_cast<double>(tokens) + of_item_ * static_cast<double>(items));
    }

    // No fewer can hold all tokens, items and clips.
    std::size_t fewest_bins() const {
        Load sum;
        for (const Load& load : loads_) sum = sum + load;
        const Load limit = limit_of(model_);
        const auto of = [](std::int64_t all, std::int64_t each) { return all == 0 ? 0 : (all - 1) / each + 1; };
        const std::int64_t fewest = std::max({of(sum.tokens, limit.tokens), of(sum.items, limit.items),
                                              of(sum.video_us, limit.video_us), std::int64_t{1}});
        return static_cast<std::size_t>(fewest);
    }

    Works tokens_and_items() const {
        Works works{2, {}};
        for (const Load& load : loads_) {
            works.of.push_back(static_cast<double>(load.tokens));
            works.of.push_back(static_cast<double>(load.items));
        }
        return works;
    }

    const std::vector<Load>& loads_;
    const Model& model_;
    SampleWork work_;
    double of_token_ = 0, of_item_ = 0;
};

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
