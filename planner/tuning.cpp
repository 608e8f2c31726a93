#include "pipeweaver/planner/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

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

std::string effort_table() {
    constexpr std::array<std::pair<std::size_t, std::size_t>, 9> rows{{{1'000, 1},
                                                                       {1'000, 16},
                                                                       {1'000, 128},
                                                                       {5'000, 8},
                                                                       {10'000, 1},
                                                                       {10'000, 128},
                                                                       {40'000, 1},
                                                                       {40'000, 128},
                                                                       {60'000, 1}}};
    std::string table =
        "| tasks of a replica | replicas | one policy whatever the time | full bounds | order warms later batches | "
        "replicas trade | examined | under perturbed costs | near schedules compared | partitions searched |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n";
    const auto yes = [](bool is) { return is ? "yes" : "no"; };
    for (const auto& [tasks, replicas] : rows) {
        const Effort one = effort_of(tasks, replicas);
        table += fmt::format("| {} | {} |", tasks, replicas);
        if (one.can_plan)
            table += fmt::format(" {} | {} | {} | {} | {} | {}{} | {} | {} |\n", yes(one.policy_first),
                                 one.full_bounds_first ? "first" : "last", yes(one.keeps_order), yes(one.exchanges),
                                 one.examined, one.perturbed, one.perturbs_anyhow ? "" : ", if time is left",
                                 one.alternatives, one.finalists);
        else
            table += " refused | | | | | | | |\n";
    }
    return table;
}

}  // namespace pipeweaver::planner
