#include "pipeweaver/planner/tuning.hpp"

#include <algorithm>

namespace pipeweaver::planner {

search::AlternativesWanted ChoiceRule::near(std::size_t tasks, std::size_t problems) const {
    const std::size_t least = by_median ? 2 : 1;  // who asks for a robust schedule gets a choice, whatever it takes
    return {std::clamp<std::size_t>(work / (tasks * problems), least, most) - 1, within};
}

Effort effort_of(std::size_t tasks, std::size_t replicas, const ChoiceRule& rule) {
    const bool at_leisure = tasks <= search::most_tasks_at_leisure;
    Effort effort;
    effort.can_plan = tasks <= sizes.tasks;
    effort.policy_first = effort.full_bounds_first = effort.keeps_order = at_leisure;
    effort.exchanges = replicas > 1 && 2 * tasks * replicas <= sizes.tasks_exchanged;
    effort.examined = std::min(replicas, sizes.replicas_examined);
    effort.perturbed = std::clamp<std::size_t>(sizes.tasks_perturbed / tasks, 1, effort.examined);
    effort.perturbs_anyhow = effort.perturbed * tasks <= sizes.tasks_perturbed_soon;
    effort.alternatives = rule.near(tasks, replicas).most;
    effort.finalists = std::min(quick_choice.finalists, quick_choice.most_tasks / tasks);
    if (effort.finalists < 2) effort.finalists = 0;
    return effort;
}

}  // namespace pipeweaver::planner
