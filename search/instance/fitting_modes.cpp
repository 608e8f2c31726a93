#include "search/instance/fitting_modes.hpp"

#include <algorithm>

namespace pipeweaver::search {

namespace {

// Ranks with a capacity, on which all hold 0 bytes or more at every moment.
std::vector<char> ranks_that_limit(const Flat& flat) {
    std::vector<char> limits(flat.ranks());
    for (std::uint32_t r = 0; r < flat.ranks(); ++r) limits[r] = flat.room[r] == unlimited ? 0 : 1;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i)
        if (flat.pair_of[i] == schedule::Replayer::unpaired && flat.cost(i, 0).net() < 0) limits[flat.rank_of[i]] = 0;
    return limits;
}

// For the pair alone; its weight gradient finds what it needs already taken.
bool has_room(const Flat& flat, std::uint32_t forward, std::uint32_t backward, std::uint32_t mode) {
    const Cost &first = flat.cost(forward, mode), &second = flat.cost(backward, mode);
    return std::max(first.acquire, first.net() + second.acquire) <= flat.room[flat.rank_of[forward]];
}

}  // namespace

std::vector<std::uint8_t> fitting_modes(const Flat& flat) {
    std::vector<std::uint8_t> fits(flat.cost_table.size(), 1);
    const auto limits = ranks_that_limit(flat);
    for (const schedule::Pair& pair : flat.problem().pairs) {
        const auto tasks = tasks_of(pair);
        if (limits[flat.rank_of[tasks[0]]] == 0) continue;
        std::vector<std::uint8_t> has(flat.modes(tasks[0]));
        for (std::uint32_t m = 0; m < has.size(); ++m) has[m] = has_room(flat, tasks[0], tasks[1], m) ? 1 : 0;
        if (std::find(has.begin(), has.end(), 1) == has.end()) continue;
        for (const std::uint32_t task : tasks) std::copy(has.begin(), has.end(), fits.begin() + flat.cost_first[task]);
    }
    return fits;
}

}  // namespace pipeweaver::search
