// Samples into microbatches.
#include "pipeweaver/base/assert.hpp"
#include "pipeweaver/base/error.hpp"
#include "pipeweaver/workloads/batch.hpp"
#include "workloads/packing/balanced.hpp"
#include "workloads/packing/bins.hpp"
#include "workloads/packing/padded.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace pipeweaver::workloads {

namespace {

constexpr std::size_t room_percent = 10;   // balanced microbatches over the fewest
constexpr std::size_t most_percent = 150;  // of the fewest, for the sake of a pipeline's ranks

// An item of its own that is too large says more than the sample's sum.
std::optional<std::string> too_large_item(const Sample& sample, const Model& model) {
    for (std::size_t i = 0; i < sample.items.size(); ++i)
        if (sample.items[i].tokens > model.microbatch_tokens)
            return fmt::format(
                "sample '{}' has an item ({}, number {}) of {} tokens, a microbatch of '{}' holds {} ({})", sample.id,
                name_of(sample.items[i].modality), i, sample.items[i].tokens, model.name, model.microbatch_tokens,
                who_says_tokens(model));
    return std::nullopt;
}

std::optional<std::string> why_not_fit(const Sample& sample, const Load& load, const Model& model) {
    if (fits(load, limit_of(model))) return std::nullopt;
    if (auto item = too_large_item(sample, model)) return item;
    if (load.tokens > model.microbatch_tokens)
        return fmt::format("sample '{}' has {} tokens, a microbatch of '{}' holds {} ({})", sample.id, load.tokens,
                           model.name, model.microbatch_tokens, who_says_tokens(model));
    if (model.most_items > 0 && load.items > model.most_items)
        return fmt::format("sample '{}' has {} items, a microbatch of '{}' holds {} (most_items of its model file)",
                           sample.id, load.items, model.name, model.most_items);
    return fmt::format(
        "sample '{}' has {:.6g} s of video, a microbatch of '{}' holds {:.6g} s (most_video_seconds of its model "
        "file)",
        sample.id, static_cast<double>(load.video_us) / 1e6, model.name, model.most_video_seconds);
}

// Tokens, patches and the squares of attention, and with them what is kept for the backward.
Works work_of_modules(const std::vector<Sample>& samples, const std::vector<std::size_t>& order, const Model& model) {
    const SampleWork work(model);
    Works works{model.modules.size(), {}};
    for (const std::size_t i : order)
        for (std::size_t m = 0; m < works.kinds; ++m) works.of.push_back(work.of(samples[i], m));
    return works;
}

// Encoders may work ahead; the backbone and what follows it have a part in every later stage.
std::vector<double> work_behind_encoders(const Works& works, const Model& model) {
    std::vector<double> sums;
    for (std::size_t first = 0; first < works.of.size(); first += works.kinds) {
        double& sum = sums.emplace_back(0);
        for (std::size_t m = model.backbone(); m < works.kinds; ++m) sum += works.of[first + m];
    }
    return sums;
}

// Before all, ids last: samples that are alike but for these may stand for each other.
bool comes_before(const Sample& a, const Sample& b) {
    const auto of_item = [](const Item& item) {
        return std::tuple(item.modality, item.tokens, item.patches, item.seconds, item.target, item.spans);
    };
    const auto fewer = [&](const Item& x, const Item& y) { return of_item(x) < of_item(y); };
    if (a.items != b.items)
        return std::lexicographical_compare(b.items.begin(), b.items.end(), a.items.begin(), a.items.end(), fewer);
    return std::tie(b.text_tokens, b.loss_tokens, b.deferred, a.id) <
           std::tie(a.text_tokens, a.loss_tokens, a.deferred, b.id);
}

// The longest first; the same for the same samples in whatever order they stand.
std::vector<std::size_t> sorted(const std::vector<Sample>& samples, const std::vector<Load>& loads) {
    std::vector<std::size_t> order(samples.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const Load &x = loads[a], &y = loads[b];
        if (x.tokens != y.tokens) return x.tokens > y.tokens;
        if (x.video_us != y.video_us) return x.video_us > y.video_us;
        return comes_before(samples[a], samples[b]);
    });
    return order;
}

std::size_t rounded_up(std::size_t count, std::size_t divisor) { return (count + divisor - 1) / divisor * divisor; }

// With room for exchanges and less memory in flight than the fewest; as many for each pipeline, and for each of its
// ranks where that does not take many more.
std::size_t balanced_count(std::size_t fewest, const Pipelines& pipelines) {
    const std::size_t roomy = fewest + (fewest * room_percent + 99) / 100;
    const auto replicas = static_cast<std::size_t>(pipelines.replicas);
    const std::size_t by_rank = rounded_up(roomy, replicas * static_cast<std::size_t>(pipelines.ranks));
    return 100 * by_rank <= most_percent * fewest ? by_rank : rounded_up(roomy, replicas);
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

std::int64_t positions_of(const Microbatch& microbatch) {
    std::int64_t sum = 0;
    for (const auto& item : microbatch.items) sum += item.size.patches;
    return sum;
}

bool holds(const Model& model, const Sample& sample) { return fits(load_of(sample), limit_of(model)); }

std::optional<std::string> why_not_fit(const Sample& sample, const Model& model) {
    if (model.too_long == TooLong::own || model.too_long == TooLong::drop) return std::nullopt;
    return why_not_fit(sample, load_of(sample), model);
}

Kept without_too_long(std::vector<Sample> samples, const Model& model) {
    Kept kept;
    if (model.too_long != TooLong::drop) return {std::move(samples), {}};
    kept.samples.reserve(samples.size());
    for (Sample& sample : samples)
        if (holds(model, sample))
            kept.samples.push_back(std::move(sample));
        else
            kept.dropped.push_back(std::move(sample.id));
    if (kept.samples.empty() && !kept.dropped.empty())
        fail(ErrorKind::input,
             "--too-long: drop leaves nothing: no sample fits a microbatch of '{}', which holds {} tokens; allowed are "
             "own, or more --microbatch-tokens",
             model.name, model.microbatch_tokens);
    return kept;
}

namespace {

// What batches are packed for.
struct Wanted {
    Packing packing = Packing::given;
    Pipelines pipelines;
    std::optional<std::size_t> drawn;  // in given order they are as many, and balanced they are to be
};

// The bins of samples by their places in `order`.
Bins renumbered(Bins bins, const std::vector<std::size_t>& order) {
    std::vector<std::size_t> place(order.size());
    for (std::size_t p = 0; p < order.size(); ++p) place[order[p]] = p;
    for (auto& bin : bins)
        for (std::size_t& sample : bin) sample = place[sample];
    return bins;
}

// As the samples would stand sorted.
Bins bins_of_sorted(const Wanted& wanted, const std::vector<Sample>& samples, const std::vector<std::size_t>& order,
                    const std::vector<Load>& loads, const Model& model) {
    std::vector<Load> in_order;
    in_order.reserve(order.size());
    for (const std::size_t i : order) in_order.push_back(loads[i]);
    const Load limit = limit_of(model);
    in_order = within(std::move(in_order), limit);
    Bins fewest = bins_first_fit_decreasing(in_order, limit);
    if (wanted.packing == Packing::first_fit_decreasing) return fewest;
    std::size_t count = balanced_count(fewest.size(), wanted.pipelines);
    if (wanted.drawn) {
        const auto replicas = static_cast<std::size_t>(wanted.pipelines.replicas);
        count = wanted.pipelines.equal ? rounded_up(*wanted.drawn, replicas) : *wanted.drawn;
        if (fewest.size() > count) fewest = renumbered(bins_in_order(loads, limit), order);
    }
    Works works = work_of_modules(samples, order, model);
    const auto passing = work_behind_encoders(works, model);
    return bins_balanced(in_order, limit, std::move(works), passing, std::min(count, samples.size()),
                         std::move(fewest));
}

Bins bins_by(const Wanted& wanted, const std::vector<Sample>& samples, const std::vector<Load>& loads,
             const Model& model) {
    if (wanted.packing == Packing::given) return bins_in_order(loads, limit_of(model));
    if (wanted.packing == Packing::padded) return PaddedPacking(samples, loads, model).run();
    const auto order = sorted(samples, loads);
    Bins bins = bins_of_sorted(wanted, samples, order, loads, model);
    for (auto& bin : bins)
        for (std::size_t& sample : bin) sample = order[sample];
    return bins;
}

std::vector<Microbatch> pack_as(const Wanted& wanted, const std::vector<Sample>& samples, const Model& model) {
    std::vector<Load> loads;
    for (const auto& sample : samples) {
        loads.push_back(load_of(sample));
        if (model.too_long == TooLong::own) continue;
        if (const auto why = why_not_fit(sample, loads.back(), model)) fail(ErrorKind::input, "{}", *why);
    }
    Bins bins = bins_by(wanted, samples, loads, model);
    if (wanted.pipelines.equal)
        bins = parted(bins, loads, rounded_up(bins.size(), static_cast<std::size_t>(wanted.pipelines.replicas)));
    std::vector<Microbatch> microbatches;
    for (const auto& bin : bins) microbatches.push_back(microbatch_of(bin, samples, attends_by_item(model)));
    return microbatches;
}

// Hands samples of the data set to `take`, those left out of which the model takes nothing, until it takes no more.
// Returns the ids of those that were dropped.
template <class Take>
std::vector<std::string> draw_until(std::string_view dataset, const Model& model, std::uint64_t seed, Take take) {
    constexpr std::uint64_t most_empty = 10'000;  // samples in a row of which nothing is left for this model
    std::vector<std::string> dropped;
    std::uint64_t empty = 0;
    for (std::uint64_t number = 0;; ++number) {
        Sample sample = draw(dataset, model, seed, number);
        const Load load = load_of(sample);
        const bool drops = model.too_long == TooLong::drop && !fits(load, limit_of(model));
        if (drops || (load.tokens == 0 && load.items == 0)) {
            if (++empty == most_empty)
                fail(ErrorKind::input, "data set '{}' has nothing that {} '{}' takes", dataset,
                     drops ? "a microbatch of" : "the model", model.name);
            if (drops) dropped.push_back(std::move(sample.id));
            continue;
        }
        empty = 0;
        if (!take(std::move(sample), load)) return dropped;
    }
}

}  // namespace

std::optional<std::string> why_no_microbatch(const std::vector<std::size_t>& members,
                                             const std::vector<Sample>& samples, const Model& model) {
    Load load;
    for (const std::size_t i : members) load = load + load_of(samples[i]);
    const bool own = model.too_long == TooLong::own && members.size() == 1;
    if (own || fits(load, limit_of(model))) return std::nullopt;
    return fmt::format("has {} tokens, {} items and {:.6g} s of video, a microbatch of '{}' holds {} tokens{}{}",
                       load.tokens, load.items, static_cast<double>(load.video_us) / 1e6, model.name,
                       model.microbatch_tokens, model.most_items > 0 ? fmt::format(", {} items", model.most_items) : "",
                       model.most_video_seconds > 0 ? fmt::format(", {:.6g} s", model.most_video_seconds) : "");
}

Microbatch microbatch_of(const std::vector<std::size_t>& members, const std::vector<Sample>& samples,
                         const Model& model) {
    PIPEWEAVER_ASSERT(!why_no_microbatch(members, samples, model));
    return microbatch_of(members, samples, attends_by_item(model));
}

std::vector<Microbatch> pack(const std::vector<Sample>& samples, const Model& model, Packing packing,
                             const Pipelines& pipelines, std::optional<std::size_t> drawn) {
    PIPEWEAVER_ASSERT(pipelines.replicas >= 1 && pipelines.ranks >= 1);
    return pack_as({packing, pipelines, drawn}, samples, model);
}

DrawnBatch draw_batch(std::string_view dataset, const Model& model, std::uint64_t seed, std::int64_t microbatches,
                      Packing packing, const Pipelines& pipelines) {
    PIPEWEAVER_ASSERT(microbatches >= 1);
    const Load limit = limit_of(model);
    DrawnBatch batch;
    Load open;
    std::int64_t opened = 1;
    batch.dropped = draw_until(dataset, model, seed, [&](Sample sample, const Load& load) {
        if (!batch.samples.empty() && !fits(open + load, limit)) {
            if (opened == microbatches) return false;
            ++opened;
            open = {};
        }
        open = open + load;
        batch.samples.push_back(std::move(sample));
        return true;
    });
    batch.microbatches = pack(batch.samples, model, packing, pipelines, static_cast<std::size_t>(opened));
    return batch;
}

DrawnBatch draw_samples(std::string_view dataset, const Model& model, std::uint64_t seed, std::int64_t samples,
                        Packing packing, const Pipelines& pipelines) {
    PIPEWEAVER_ASSERT(samples >= 1);
    DrawnBatch batch;
    batch.dropped = draw_until(dataset, model, seed, [&](Sample sample, const Load&) {
        batch.samples.push_back(std::move(sample));
        return static_cast<std::int64_t>(batch.samples.size()) < samples;
    });
    batch.microbatches = pack(batch.samples, model, packing, pipelines);
    return batch;
}

}  // namespace pipeweaver::workloads
