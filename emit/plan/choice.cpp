#include "emit/plan/choice.hpp"

#include "pipeweaver/base/text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipeweaver::emit {

using planner::Gain;
using planner::perturbed_replays;
using planner::RobustChoice;

std::string choice_text(const RobustChoice& choice) {
    if (choice.alternatives == 0) return {};
    const std::string from = fmt::format("{} other schedule{} at most {:.3g} % longer", choice.alternatives,
                                         choice.alternatives == 1 ? " was" : "s were", 100 * choice.rule.within);
    if (!choice.other)
        return fmt::format("{}; under wrong costs {}, so the shortest is the plan", from,
                           choice.rule.by_median ? "none is clearly faster with a smaller median"
                                                 : "none is clearly faster more often than slower");
    const Gain& gain = choice.over_smallest;
    return fmt::format(
        "{}, and the plan is one of them: under wrong costs it is faster than the shortest ({}) in {} of {} replays "
        "and slower in {}; the shortest takes p10 {:.4f}x, p50 {:.4f}x, p90 {:.4f}x of the plan's time",
        from, human(choice.smallest), gain.wins, perturbed_replays, gain.losses, gain.p10, gain.p50, gain.p90);
}

nlohmann::ordered_json choice_json(const RobustChoice& choice) {
    nlohmann::ordered_json json{{"rule", choice.rule.by_median ? "median" : "wins"},
                                {"within", choice.rule.within},
                                {"alternatives", choice.alternatives},
                                {"smallest_makespan_ns", choice.smallest.count()},
                                {"over_smallest", nullptr}};
    const Gain& gain = choice.over_smallest;
    if (choice.other)
        json["over_smallest"] = {{"replays", perturbed_replays}, {"wins", gain.wins},    {"losses", gain.losses},
                                 {"gain_p10", gain.p10},         {"gain_p50", gain.p50}, {"gain_p90", gain.p90}};
    return json;
}

}  // namespace pipeweaver::emit
