#include "planner/endings.hpp"

#include <memory>
#include <utility>

namespace pipeweaver::planner {

namespace {

using schedule::StopReason;

search::KeepGoing go_on_so_often(std::uint64_t times) {
    // Shared: who is handed a KeepGoing may copy it.
    return [times, asked = std::make_shared<std::uint64_t>(0)](const search::Progress&) {
        return (*asked)++ < times ? std::nullopt : std::optional(StopReason::budget);
    };
}

}  // namespace

Allowance counted(const Allowance& allowance, std::vector<std::optional<std::uint64_t>>& stops) {
    return [&allowance, &stops](const Share& share) -> search::KeepGoing {
        const std::size_t limit = stops.size();
        stops.emplace_back();
        const auto inner = allowance(share);
        if (!inner) return nullptr;
        const auto asked = std::make_shared<std::uint64_t>(0);
        return [inner, asked, limit, &stops](const search::Progress& progress) {
            const auto reason = inner(progress);
            if (!reason)
                ++*asked;
            else if (!stops[limit])
                stops[limit] = *asked;
            return reason;
        };
    };
}

Allowance again(const Ending& ending) {
    if (!ending) return [](const Share&) { return go_on_so_often(0); };
    // The first limit is that of the policies, which all had their time.
    return [&ending, limit = std::make_shared<std::size_t>(0),
            policies = std::make_shared<bool>(true)](const Share&) -> search::KeepGoing {
        if (std::exchange(*policies, false)) return go_on_so_often(UINT64_MAX);
        const auto& times = ending->at((*limit)++);
        return go_on_so_often(times.value_or(UINT64_MAX));
    };
}

}  // namespace pipeweaver::planner
