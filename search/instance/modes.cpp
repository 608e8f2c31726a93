#include "search/instance/modes.hpp"

#include <algorithm>
#include <tuple>

namespace pipeweaver::search {

namespace {

using schedule::Mode;
using schedule::Pair;

std::int64_t time_of(const Mode& mode) { return (mode.forward + mode.backward + mode.weight).count(); }

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

std::vector<std::vector<std::uint32_t>> uniform_modes(const Flat& flat) {
    const auto& pairs = flat.problem().pairs;
    if (pairs.empty()) return {{}};
    std::size_t most = 0;
    for (const Pair& pair : pairs) most = std::max(most, pair.modes.size());
    std::vector<std::pair<std::int64_t, std::size_t>> by_time;
    for (std::size_t j = 0; j < most; ++j) {
        std::int64_t total = 0;
        for (const Pair& pair : pairs) total += time_of(pair.modes[std::min(j, pair.modes.size() - 1)]);
        by_time.emplace_back(total, j);
    }
    std::sort(by_time.begin(), by_time.end());
    std::vector<std::vector<std::uint32_t>> choices;
    for (const auto& [total, j] : by_time) {
        auto& choice = choices.emplace_back();
        for (const Pair& pair : pairs) choice.push_back(static_cast<std::uint32_t>(std::min(j, pair.modes.size() - 1)));
    }
    return choices;
}

std::vector<std::vector<std::uint32_t>> frugal_modes(const Flat& flat) {
    const auto own_peak = [](const Mode& mode) { return mode.held + std::max(mode.forward_transient, mode.transient); };
    return {by_key(flat, [&](const Mode& mode) { return std::tuple(mode.held, own_peak(mode), time_of(mode)); }),
            by_key(flat, [&](const Mode& mode) { return std::tuple(own_peak(mode), mode.held, time_of(mode)); })};
}

}  // namespace pipeweaver::search
