#include "pipeweaver/search/standing.hpp"

#include <algorithm>

namespace pipeweaver::search {

double largest_peak(const schedule::Problem& problem, std::span<const Bytes> peak) {
    const bool limited = std::all_of(problem.ranks.begin(), problem.ranks.end(), [](const schedule::Rank& rank) {
        return rank.capacity && rank.capacity->count > 0;
    });
    double largest = 0;
    for (std::size_t rank = 0; rank < peak.size(); ++rank) {
        const double unit = limited ? static_cast<double>(problem.ranks[rank].capacity->count) : 1;
        largest = std::max(largest, static_cast<double>(peak[rank].count) / unit);
    }
    return largest;
}

double largest_peak(const schedule::Problem& problem, const schedule::Replay& replay) {
    return largest_peak(problem, replay.peak);
}

Standing standing_of(const schedule::Problem& problem, const schedule::Replay& replay) {
    return {replay.makespan, largest_peak(problem, replay)};
}

}  // namespace pipeweaver::search
