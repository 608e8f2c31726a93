#include "capacity/study/host_ends.hpp"

#include "pipeweaver/planner/host_bound.hpp"

namespace pipeweaver::capacity {

std::optional<Duration> far_by_flags(planner::LayoutRequest request, const planner::LayoutAndZero& as, Duration near,
                                     const Executor& execute) {
    const auto waiting = planner::waiting_for_host(*request.setup);
    if (!waiting) return std::nullopt;
    request.setup = &*waiting;
    request.own.reset();
    request.slowest.reset();
    request.stores.reset();  // of other times
    request.allows = [&as](const planner::LayoutAndZero& one) { return planner::are_equal(one, as); };
    const auto choice = planner::judge_layouts(request, execute);
    if (choice.tried.empty()) return std::nullopt;
    const auto bound = planner::host_bound_of(*waiting, near, choice.best().step);
    return bound ? std::optional(bound->most()) : std::nullopt;
}

}  // namespace pipeweaver::capacity
