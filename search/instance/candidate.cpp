#include "search/instance/candidate.hpp"

namespace pipeweaver::search {

std::optional<std::vector<std::uint32_t>> sequence_of(const Flat& flat, const schedule::Schedule& schedule) {
    std::vector<std::uint32_t> missing(flat.tasks()), next(flat.tasks(), UINT32_MAX), open;
    for (std::uint32_t i = 0; i < flat.tasks(); ++i) missing[i] = static_cast<std::uint32_t>(flat.before[i].size());
    for (const auto& order : schedule.order)
        for (std::size_t k = 1; k < order.size(); ++k) {
            next[index(order[k - 1])] = static_cast<std::uint32_t>(order[k]);
            ++missing[index(order[k])];
        }
    for (const std::uint32_t i : flat.topological)
        if (missing[i] == 0) open.push_back(i);
    for (std::size_t k = 0; k < open.size(); ++k) {
        const std::uint32_t task = open[k];
        const auto ended = [&](std::uint32_t waiting) {
            if (--missing[waiting] == 0) open.push_back(waiting);
        };
        for (const Arc& arc : flat.after[task]) ended(arc.task);
        if (next[task] != UINT32_MAX) ended(next[task]);
    }
    if (open.size() < flat.tasks()) return std::nullopt;
    return open;
}

}  // namespace pipeweaver::search
