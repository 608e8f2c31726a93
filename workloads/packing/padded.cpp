#include "workloads/packing/padded.hpp"

#include <algorithm>

namespace pipeweaver::workloads {

namespace {

constexpr std::size_t most_counts = 16, least_counts = 3;  // numbers of microbatches that are tried
constexpr std::size_t most_packed = 300'000;               // samples, in all of them

}  // namespace

PaddedPacking::PaddedPacking(const std::vector<Sample>& samples, const std::vector<Load>& loads, const Model& model)
    : loads_(loads), model_(model), work_(model) {
    for (std::size_t m = 0; m < model.modules.size(); ++m) add_costs(samples, m);
}

Bins PaddedPacking::run() const {
    const Load limit = limit_of(model_);
    const auto loads = within(loads_, limit);
    Bins best = bins_in_order(loads_, limit);
    double least = cost(best);
    const std::size_t given = best.size(), fewest = std::min(given, fewest_bins());
    const std::size_t counts =
        std::clamp(most_packed / std::max<std::size_t>(loads_.size(), 1), least_counts, most_counts);
    const std::size_t step = (given - fewest) / counts + 1;
    for (std::size_t count = fewest; count <= given; count += step) {
        Works works = tokens_and_items();
        normalise(works, count);
        auto bins = bins_spread(loads, limit, works, count, Even::largest);
        if (!bins || cost(*bins) >= least) continue;
        least = cost(*bins);
        best = std::move(*bins);
    }
    return best;
}

double PaddedPacking::cost(const Bins& bins) const {
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

void PaddedPacking::add_costs(const std::vector<Sample>& samples, std::size_t m) {
    if (work_.by_microbatch(m))
        of_token_ += work_.of_length(m, model_.microbatch_tokens) / static_cast<double>(model_.microbatch_tokens);
    std::int64_t patches = 0;
    for (const Sample& sample : samples)
        for (const Item& item : sample.items)
            if (takes(model_.modules[m], item)) patches = std::max(patches, item.patches);
    if (patches > 0) of_item_ += work_.of_length(m, patches);
}

// No fewer can hold all tokens, items and clips.
std::size_t PaddedPacking::fewest_bins() const {
    const Load limit = limit_of(model_);
    Load sum;
    std::size_t alone = 0;  // above the limit
    for (const Load& load : loads_)
        if (fits(load, limit))
            sum = sum + load;
        else
            ++alone;
    const auto of = [](std::int64_t all, std::int64_t each) { return all == 0 ? 0 : (all - 1) / each + 1; };
    const std::int64_t fewest = std::max(
        {of(sum.tokens, limit.tokens), of(sum.items, limit.items), of(sum.video_us, limit.video_us), std::int64_t{1}});
    return alone + (sum == Load{} ? 0 : static_cast<std::size_t>(fewest));
}

Works PaddedPacking::tokens_and_items() const {
    Works works{2, {}};
    for (const Load& load : loads_) {
        works.of.push_back(static_cast<double>(load.tokens));
        works.of.push_back(static_cast<double>(load.items));
    }
    return works;
}

}  // namespace pipeweaver::workloads
