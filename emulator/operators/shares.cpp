#include "pipeweaver/emulator/shares.hpp"

#include "pipeweaver/workloads/counts.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <utility>

namespace pipeweaver::emulator {

using workloads::Architecture;

namespace {

using Places = std::vector<std::size_t>;  // of sequences

// How often a network has each kind of block: a layer of it, and how many there are.
std::vector<std::pair<std::int64_t, double>> kinds_of(const Architecture& network) {
    std::map<std::pair<workloads::BlockKind, double>, std::pair<std::int64_t, double>> kinds;
    for (std::int64_t i = 0; i < network.layers; ++i) {
        const std::pair kind(workloads::block_kind(network, i), workloads::sparsity_of(network, i));
        ++kinds.try_emplace(kind, i, 0.0).first->second.second;
    }
    std::vector<std::pair<std::int64_t, double>> all;
    all.reserve(kinds.size());
    for (const auto& [kind, one] : kinds) all.push_back(one);
    return all;
}

// Forward FLOPs of each sequence.
std::vector<double> flops_of(const Architecture& network, const PassShape& shape) {
    const auto kinds = kinds_of(network);
    std::map<std::pair<std::int64_t, std::int64_t>, double> known;
    std::vector<double> flops;
    for (std::size_t i = 0; i < shape.lengths.size(); ++i) {
        const std::int64_t context = shape.context.empty() ? 0 : shape.context[i];
        const auto [place, added] = known.try_emplace({shape.lengths[i], context}, 0.0);
        PassShape one{{shape.lengths[i]}};
        if (!shape.context.empty()) one.context = {context};
        for (const auto& [layer, times] : kinds)
            if (added) place->second += times * layer_flops(network, layer, one);
        flops.push_back(place->second);
    }
    return flops;
}

struct Dealt {
    std::vector<Places> of_copy;
    std::vector<double> load;

    double fullest() const { return *std::max_element(load.begin(), load.end()); }
};

// Longest first, each to the copy with the least so far.
Dealt deal(std::span<const std::size_t> order, const std::vector<double>& flops, std::size_t copies) {
    Dealt dealt{std::vector<Places>(copies), std::vector<double>(copies)};
    for (const std::size_t i : order) {
        const auto least = std::min_element(dealt.load.begin(), dealt.load.end()) - dealt.load.begin();
        dealt.load[static_cast<std::size_t>(least)] += flops[i];
        dealt.of_copy[static_cast<std::size_t>(least)].push_back(i);
    }
    return dealt;
}

// In their order, equally many on each copy, of the first ones one more.
Dealt deal_in_order(const std::vector<double>& flops, std::size_t copies) {
    Dealt dealt{std::vector<Places>(copies), std::vector<double>(copies)};
    std::size_t next = 0;
    for (std::size_t c = 0; c < copies; ++c)
        for (std::size_t left = flops.size() / copies + (c < flops.size() % copies ? 1 : 0); left > 0; --left) {
            dealt.load[c] += flops[next];
            dealt.of_copy[c].push_back(next++);
        }
    return dealt;
}

struct Choice {
    Places split;  // by their places
    Dealt dealt;
};

Choice choose(const Architecture& network, const PassShape& shape, const ModuleLayout& module) {
    const auto flops = flops_of(network, shape);
    if (module.sharing == Sharing::counted) return {{}, deal_in_order(flops, static_cast<std::size_t>(module.copies))};
    Places order(flops.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return flops[a] > flops[b]; });
    const auto copies = static_cast<std::size_t>(module.copies);
    constexpr double price_of_splitting = 1.1;
    Choice best;
    double least = -1;
    const auto consider = [&](std::size_t split) {
        Choice one{Places(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(split)), {}};
        one.dealt = deal(std::span(order).subspan(split), flops, copies);
        double shared = 0;
        for (const std::size_t i : one.split) shared += flops[i];
        const double load = one.dealt.fullest() + price_of_splitting * shared / static_cast<double>(copies);
        if (least >= 0 && load >= least) return;
        least = load;
        best = std::move(one);
    };
    if (module.sharing != Sharing::split) consider(0);
    if (module.sharing == Sharing::split) consider(order.size());
    for (std::size_t split = order.size() % copies; module.sharing == Sharing::hybrid && split <= order.size();
         split += copies)
        consider(split);
    std::sort(best.split.begin(), best.split.end());
    return best;
}

// The sequences one behind the other, of which each copy takes as many positions.
void split_over(const Places& sequences, const PassShape& shape, std::int64_t quantum, std::vector<Share>& shares) {
    std::int64_t all = 0;
    for (const std::size_t i : sequences) all += shape.lengths[i];
    const std::int64_t rows = quantum * static_cast<std::int64_t>(shares.size());
    const std::int64_t part = std::max<std::int64_t>(1, (all + rows - 1) / rows) * quantum;
    std::int64_t at = 0;  // where the sequence begins
    for (const std::size_t i : sequences) {
        const std::int64_t length = shape.lengths[i];
        for (std::int64_t first = 0; first < length;) {
            const std::int64_t copy = (at + first) / part;
            const std::int64_t end = std::min(length, (copy + 1) * part - at);
            shares[static_cast<std::size_t>(copy)].part.push_back({i, first, end});
            first = end;
        }
        at += length;
    }
}

}  // namespace

std::vector<Share> shares_of(const Architecture& network, const PassShape& shape, const ModuleLayout& module,
                             std::int64_t quantum) {
    std::vector<Share> shares(static_cast<std::size_t>(module.copies));
    if (shape.lengths.empty()) return shares;
    Choice choice = choose(network, shape, module);
    for (std::size_t c = 0; c < shares.size(); ++c) {
        auto& mine = choice.dealt.of_copy[c];
        std::sort(mine.begin(), mine.end());
        for (const std::size_t i : mine) shares[c].whole.push_back({i, 0, shape.lengths[i]});
    }
    split_over(choice.split, shape, quantum, shares);
    return shares;
}

PassShape shape_of_copy(const Architecture& network, const PassShape& shape, const ModuleLayout& module, Fullest by) {
    if (module.copies == 1 || shape.lengths.empty()) return shape;
    const Choice choice = choose(network, shape, module);
    std::vector<double> load = choice.dealt.load;
    for (std::size_t c = 0; by == Fullest::by_positions && c < load.size(); ++c) {
        load[c] = 0;
        for (const std::size_t i : choice.dealt.of_copy[c])
            load[c] += static_cast<double>(shape.lengths[i] + (shape.context.empty() ? 0 : shape.context[i]));
    }
    const auto fullest = static_cast<std::size_t>(std::max_element(load.begin(), load.end()) - load.begin());
    PassShape own;
    const auto add = [&](const Places& places) {
        for (const std::size_t i : places) {
            own.lengths.push_back(shape.lengths[i]);
            if (!shape.context.empty()) own.context.push_back(shape.context[i]);
        }
    };
    add(choice.dealt.of_copy[fullest]);
    own.whole = own.lengths.size();
    add(choice.split);
    return own;
}

}  // namespace pipeweaver::emulator
