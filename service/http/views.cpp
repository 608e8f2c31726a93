#include "service/http/views.hpp"

#include "pipeweaver/schedule/gap.hpp"

#include <nlohmann/json.hpp>

namespace pipeweaver::service {

using nlohmann::ordered_json;

ordered_json session_json(const SessionView& view) {
    ordered_json one{{"session", view.name}, {"ready", view.ready}};
    if (!view.error.empty()) one["error"] = view.error;
    if (view.ready) {
        one["model"] = view.model;
        one["cluster"] = view.cluster;
        one["ranks"] = view.ranks;
        one["replicas"] = view.replicas;
        one["replicas_of_layout"] = view.all_replicas;
    }
    one["unfinished"] = view.unfinished;
    one["planned"] = view.planned;
    one["late"] = view.late;
    one["failed"] = view.failed;
    return one;
}

ordered_json found_json(const StoredPlan& plan) {
    const Duration makespan{plan.makespan_ns}, bound{plan.lower_bound_ns};
    return {{"by", plan.searched() ? "search" : "policy"},
            {"strategy", plan.strategy},
            {"rounds", plan.rounds},
            {"makespan_ns", plan.makespan_ns},
            {"lower_bound_ns", plan.lower_bound_ns},
            {"gap", schedule::relative_gap(makespan, bound)},
            {"step_ns", plan.step_ns},
            {"seconds", static_cast<double>(plan.planning_ns) / 1e9}};
}

}  // namespace pipeweaver::service
