#include "search/instance/modes.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace pipeweaver::search {

bool has_modes(const Flat& flat) {
    const auto& pairs = flat.problem().pairs;
    return std::any_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.modes.size() > 1; });
}

namespace {

using schedule::Mode;
using schedule::Pair;

// The mode with the smallest key, for every pair.
template <class Key>
std::vector<std::uint32_t> by_key(const Flat& flat, Key key) {
    std::vector<std::uint32_t> choice;
    for (const Pair& pair : flat.problem().pairs) {
        const auto least = std::min_element(pair.modes.begin(), pair.modes.end(),
                                            [&](const Mode& a, const Mode& b) { return key(a) < key(b); });
        choice.push_back(static_cast<std::uint32_t>(least - pair.modes.begin()));
    }
    return choice;
}

}  // namespace

std::int64_t time_of(const Mode& mode) { return (mode.forward + mode.backward + mode.weight).count(); }

std::uint32_t mode_of(const Pair& pair, std::uint32_t mode) {
    return std::min(mode, static_cast<std::uint32_t>(pair.modes.size() - 1));
}

std::vector<std::uint32_t> modes_by_time(std::span<const Pair* const> pairs) {
    std::size_t most = 0;
    for (const Pair* pair : pairs) most = std::max(most, pair->modes.size());
    std::vector<std::int64_t> total(most, 0);
    for (const Pair* pair : pairs)
        for (std::uint32_t j = 0; j < most; ++j) total[j] += time_of(pair->modes[mode_of(*pair, j)]);
    std::vector<std::uint32_t> sorted(most);
    std::iota(sorted.begin(), sorted.end(), 0U);
    std::stable_sort(sorted.begin(), sorted.end(), [&](auto i, auto j) { return total[i] < total[j]; });
    return sorted;
}

std::vector<std::vector<std::uint32_t>> uniform_modes(const Flat& flat) {
    const auto& pairs = flat.problem().pairs;
    if (pairs.empty()) return {{}};
    std::vector<const Pair*> all;
    all.reserve(pairs.size());
    for (const Pair& pair : pairs) all.push_back(&pair);
    std::vector<std::vector<std::uint32_t>> choices;
    for (const std::uint32_t j : modes_by_time(all)) {
        auto& choice = choices.emplace_back();
        for (const Pair& pair : pairs) choice.push_back(mode_of(pair, j));
    }
    return choices;
}

std::vector<std::vector<std::uint32_t>> frugal_modes(const Flat& flat) {
    const auto own_peak = [](const Mode& mode) { return mode.held + std::max(mode.forward_transient, mode.transient); };
    return {by_key(flat, [&](const Mode& mode) { return std::tuple(mode.held, own_peak(mode), time_of(mode)); }),
            by_key(flat, [&](const Mode& mode) { return std::tuple(own_peak(mode), mode.held, time_of(mode)); })};
}

}  // namespace pipeweaver::search
